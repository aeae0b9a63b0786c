"""Placement of several slices or GPUs that start together."""
