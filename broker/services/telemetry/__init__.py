"""Storing what GPUs do, and rolling it up."""
