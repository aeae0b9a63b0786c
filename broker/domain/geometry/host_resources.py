"""CPU, memory and scratch of a node, and the share of a slice."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self

MEBIBYTES_PER_GIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class HostResources:
    """Amounts of CPU, memory and scratch storage; zero: unknown."""

    cpu_milli: int = 0
    memory_mib: int = 0
    scratch_mib: int = 0

    @property
    def is_known(self) -> bool:
        """Return whether any of the amounts is known."""
        return any(self.amounts())

    def amounts(self) -> tuple[int, int, int]:
        """Return the amounts in the order of the fields."""
        return self.cpu_milli, self.memory_mib, self.scratch_mib

    def share(self, size: int, grid: int, *, gpus: int = 1) -> Self:
        """Return the exact share of some memory slices of one of so many GPUs.

        A known amount stays known, however small.
        """
        return type(self)(*(amount and max(amount * size // (gpus * grid), 1) for amount in self.amounts()))

    def rounded_down(self) -> Self:
        """Return round amounts that people can read, at least the least of each."""
        rows = zip(self.amounts(), STEP.amounts(), LEAST.amounts(), strict=True)
        return type(self)(*(max(amount - amount % step, least) for amount, step, least in rows))

    def times(self, count: int) -> Self:
        """Return the amounts of so many slices."""
        return type(self)(*(amount * count for amount in self.amounts()))

    def or_else(self, other: "HostResources") -> Self:
        """Return these amounts, with those of another where one is unknown."""
        return type(self)(*(mine or theirs for mine, theirs in zip(self.amounts(), other.amounts(), strict=True)))


UNKNOWN = HostResources()
# What a whole GPU brings where its node reports nothing: eight leave a node of 128 cores a quarter for itself.
DEFAULT_OF_A_GPU = HostResources(cpu_milli=12_000, memory_mib=98_304, scratch_mib=204_800)
STEP = HostResources(cpu_milli=100, memory_mib=128, scratch_mib=1024)
LEAST = HostResources(cpu_milli=100, memory_mib=256, scratch_mib=1024)
FIELDS = tuple(each.name for each in fields(HostResources))


def smallest_of(many: Iterable[HostResources]) -> HostResources:
    """Return the smallest known amount of each kind; unknown where none is known."""
    columns = zip(*(each.amounts() for each in many), strict=True)
    return HostResources(*(min((amount for amount in column if amount), default=0) for column in columns))


def exceeded_fields(wanted: HostResources, available: HostResources) -> tuple[str, ...]:
    """Return the fields of which more is wanted than a known amount."""
    rows = zip(FIELDS, wanted.amounts(), available.amounts(), strict=True)
    return tuple(name for name, most, there in rows if there and most > there)


def format_cpus(cpu_milli: int) -> str:
    """Return a number of CPUs with at most two decimals, rounded down: 3.42."""
    whole, hundredths = divmod(cpu_milli // 10, 100)
    return f"{whole}.{hundredths:02d}".rstrip("0") if hundredths else str(whole)


def format_size(mib: int) -> str:
    """Return a size in GiB with at most one decimal, rounded down.

    Below one GiB it is in MiB.
    """
    if mib < MEBIBYTES_PER_GIBIBYTE:
        return f"{mib} MiB"
    whole, tenths = divmod(mib * 10 // MEBIBYTES_PER_GIBIBYTE, 10)
    return f"{whole}.{tenths} GiB" if tenths else f"{whole} GiB"
