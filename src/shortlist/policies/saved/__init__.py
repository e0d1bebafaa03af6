"""What a loop leaves on disk for a server to read."""
