"""What of a loop is on the disk: what a server reads (`snapshot`), and what it goes on from (`resume`)."""
