"""What is added to a clipped sum, and where the randomness comes from."""
