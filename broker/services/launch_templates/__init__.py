"""Saved launch templates: of projects, and of the operators for every tenant."""
