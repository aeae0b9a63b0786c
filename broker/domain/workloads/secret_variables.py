"""Saved secrets in a workload: names, sizes, and the variables that receive them."""

import re
from dataclasses import dataclass, field

MAX_NAME_LENGTH = 100
MAX_VALUE_BYTES = 32 * 1024
MAX_LEASE_BYTES = 64 * 1024
MAX_VARIABLES = 50
NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretVariable:
    """Environment variable of a lease whose value comes from a saved secret."""

    name: str
    secret_id: str = ""
    version: int = 0
    value: str | None = field(default=None, repr=False)  # None: not read, or unreadable


def secret_name_fault(name: str) -> str:
    """Return what is wrong with a secret's name; empty if nothing.

    The text does not repeat the name: people paste values into the wrong field.
    """
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        return f"A name must have 1 to {MAX_NAME_LENGTH} capital letters, digits and _, and start with a letter."
    return ""


def secret_value_fault(value: str) -> str:
    """Return what is wrong with a secret's value; empty if nothing."""
    if not value:
        return "The value is empty."
    if "\0" in value:
        return "The value contains a NUL character, which no environment variable can hold."
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "The value is not valid text."
    if size > MAX_VALUE_BYTES:
        return f"The value has {size:,} bytes; the maximum is {MAX_VALUE_BYTES:,}."
    return ""
