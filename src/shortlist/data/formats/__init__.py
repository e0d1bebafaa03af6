"""The user's own data: folders, tables, arrays."""
