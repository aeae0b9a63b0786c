"""The one exception that ends a start: its text is for the person at the terminal."""


class Complaint(Exception):
    """Say what happened, why, and what to do next."""
