"""Choosing settings by validation alone."""
