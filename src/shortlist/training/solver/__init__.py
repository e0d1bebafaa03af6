"""Linear models trained on all items at once."""
