"""Lists that a model chooses while people answer."""
