"""What a line of text that people give may hold."""

import unicodedata

NAME_LENGTH = 120


def has_control(text: str) -> bool:
    """Tell whether text holds control, bidirectional or other invisible characters."""
    return any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn") for letter in text)
