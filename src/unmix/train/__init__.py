"""Training: losses, gradient descent, what is recorded and why a run stopped."""
