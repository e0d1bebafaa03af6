"""What owners and reviewers look at and decide: items with their history, corrections, classes, agreement."""
