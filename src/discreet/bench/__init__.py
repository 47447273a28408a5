"""Measurements: what a method reaches, what it costs in time, next to others, in one process."""
