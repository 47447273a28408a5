"""Carrying out a plan: the state, the loop, the run folder and its checkpoints."""
