"""Ends of leases: notices before and after them, and automatic extension."""
