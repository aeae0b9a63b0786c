"""Validation of single-line texts, such as names."""

import unicodedata

NAME_LENGTH = 120
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def has_control(text: str) -> bool:
    """Return whether text has control, bidirectional or other invisible characters.

    Line breaks count as well.
    """
    return any(unicodedata.category(character) in HIDDEN_CATEGORIES for character in text)


def is_name(text: str) -> bool:
    """Return whether text is a valid name."""
    return 1 <= len(text) <= NAME_LENGTH and not has_control(text)
