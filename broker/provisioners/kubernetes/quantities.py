"""Amounts as Kubernetes writes them. A server writes them anew in its own way: `1024Gi` comes back as `1Ti`."""

import re
from collections.abc import Mapping
from fractions import Fraction

WRITTEN = re.compile(
    r"(?P<number>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:(?P<unit>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?\d{1,3}))?"
)
BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
DECIMAL = {
    unit: Fraction(10) ** power
    for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
NONE = Fraction(0)


def amount(text: str) -> Fraction:
    """Return how much a text says, exactly; nothing where it says no amount at all."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return NONE
    unit = Fraction(10) ** int(found["power"]) if found["power"] else Fraction(BINARY.get(found["unit"], 1))
    return Fraction(found["number"]) * DECIMAL.get(found["unit"], unit)


def used_up(most: Mapping[str, str], used: Mapping[str, str]) -> list[str]:
    """Name what nothing is left of; what nobody may have any of is not used up."""
    return sorted(name for name, text in most.items() if NONE < amount(text) <= amount(used.get(name, "")))
