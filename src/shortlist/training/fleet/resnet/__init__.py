"""ResNet-32 for many runs at once."""
