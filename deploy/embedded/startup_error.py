"""Exception that ends a start with a message for the person at the terminal."""


class StartupError(Exception):
    """Error whose text says what happened, why, and what to do next."""
