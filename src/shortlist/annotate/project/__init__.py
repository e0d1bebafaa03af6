"""A project: its folder, its items and what is told about it."""
