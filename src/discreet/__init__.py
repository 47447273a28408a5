"""Train PyTorch models with differential privacy and prove what the result gives away."""
