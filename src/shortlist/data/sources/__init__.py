"""The datasets known by name, one file each."""
