"""Kubernetes quantities, which a server rewrites: `1024Gi` comes back as `1Ti`."""

import re
from collections.abc import Mapping
from fractions import Fraction

QUANTITY = re.compile(
    r"(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:(?P<unit>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?\d{1,3}))?"
)
BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
DECIMAL = {
    unit: Fraction(10) ** power for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
ZERO = Fraction(0)
LEAST_BYTES = 2**26  # a larger bare number is bytes: as MiB it would be 64 TiB


def parse_quantity(text: str) -> Fraction:
    """Parse a quantity exactly; zero for text that is none."""
    found = QUANTITY.fullmatch(text)
    if found is None:
        return ZERO
    unit = Fraction(10) ** int(found["power"]) if found["power"] else Fraction(BINARY.get(found["unit"], 1))
    return Fraction(found["number"]) * DECIMAL.get(found["unit"], unit)


def parse_memory_mib(text: str) -> int:
    """Parse a memory size in MiB; zero for text that is none.

    A bare number is MiB, as in labels, or bytes if it is too large for that.
    """
    amount = parse_quantity(text.strip())
    if amount <= 0:
        return 0
    in_mebibytes = text.strip()[-1].isdigit() and amount < LEAST_BYTES
    return int(amount) if in_mebibytes else int(amount / 2**20)


def exhausted_names(most: Mapping[str, str], used: Mapping[str, str]) -> list[str]:
    """Return the exhausted resources; those with a limit of zero are left out."""
    return sorted(
        name for name, text in most.items() if ZERO < parse_quantity(text) <= parse_quantity(used.get(name, ""))
    )
