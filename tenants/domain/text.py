"""What a line of text that people give may hold."""

import unicodedata

NAME_LENGTH = 120
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def has_control(text: str) -> bool:
    """Tell whether text holds control, bidirectional or other invisible characters, or breaks its line."""
    return any(unicodedata.category(letter) in HIDDEN for letter in text)


def is_name(text: str) -> bool:
    """Tell whether text may name something that people see in a list."""
    return 1 <= len(text) <= NAME_LENGTH and not has_control(text)
