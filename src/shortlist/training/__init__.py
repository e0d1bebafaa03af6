"""Training: one run, many runs (the fleet), checkpoints, honest model selection."""
