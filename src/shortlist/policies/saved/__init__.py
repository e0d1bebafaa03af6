"""What of a loop is on the disk for a server to read."""
