"""Operators' pages of the launch templates for every tenant."""
