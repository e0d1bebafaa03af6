"""The paper's LeNet for many runs at once."""
