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
MEMORY = re.compile(r"(?P<number>[\d.]+)\s*(?P<unit>[kmgt]?)(?P<binary>i?)b?", re.ASCII | re.IGNORECASE)
# Bare numbers are MiB, KiB or bytes: whichever gives between 1 GiB and 1 TiB, which is what GPUs have.
LEAST_KIBIBYTES, LEAST_BYTES = 2**20, 2**30


def parse_quantity(text: str) -> Fraction:
    """Parse a quantity exactly; zero for text that is none."""
    found = QUANTITY.fullmatch(text)
    if found is None:
        return ZERO
    unit = Fraction(10) ** int(found["power"]) if found["power"] else Fraction(BINARY.get(found["unit"], 1))
    return Fraction(found["number"]) * DECIMAL.get(found["unit"], unit)


def parse_memory_mib(text: str) -> int:
    """Parse a GPU's memory size in MiB; zero for text that is none.

    It may be written as a quantity, as nvidia-smi writes it (81559 MiB, 80GB), or as a bare number.
    """
    amount = parse_quantity(text.strip())
    if amount > 0 and text.strip()[-1].isdigit():
        if amount < LEAST_KIBIBYTES:
            return int(amount)
        return int(amount / 2**10) if amount < LEAST_BYTES else int(amount / 2**20)
    if found := MEMORY.fullmatch(text.strip()):
        letter = found["unit"].upper()
        unit = f"{letter}i" if found["binary"] else letter.replace("K", "k")
        amount = parse_quantity(f"{found['number']}{unit}")
    return max(int(amount / 2**20), 0)


def exhausted_names(most: Mapping[str, str], used: Mapping[str, str]) -> list[str]:
    """Return the exhausted resources; those with a limit of zero are left out."""
    return sorted(
        name for name, text in most.items() if ZERO < parse_quantity(text) <= parse_quantity(used.get(name, ""))
    )
