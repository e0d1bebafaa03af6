"""A whole training as the command line does it."""
