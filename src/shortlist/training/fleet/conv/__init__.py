"""The convolutions of a fleet."""
