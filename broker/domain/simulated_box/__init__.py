"""Simulated box: imitates a shell and its programs without executing anything."""
