"""One reading of a GPU or MIG device, in the units that are stored.

A value that is missing, blank or impossible is None, which means unknown: it is never zero.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite


class Scope(StrEnum):
    """What activity and memory were measured on."""

    DEVICE = "device"  # the whole GPU, also where a lease holds a part of it
    SLICE = "slice"  # the MIG device alone


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What one GPU, or one of its MIG devices, did at one time."""

    gpu_uuid: str
    at: datetime
    gpu_instance: int | None = None  # NVML's id of the MIG device's GPU instance; None: the whole GPU
    engine_active: int | None = None  # per mille, as the next three
    sm_active: int | None = None
    tensor_active: int | None = None
    dram_active: int | None = None
    memory_used_mib: int | None = None
    power_dw: int | None = None  # tenths of a watt, of the whole GPU
    temperature_c: int | None = None  # of the whole GPU
    sm_clock_mhz: int | None = None
    throttle_reasons: int | None = None  # NVML's bit mask
    energy_mj: int | None = None  # counter of the whole GPU since its driver started
    pcie_rx_bytes: int | None = None  # per second
    pcie_tx_bytes: int | None = None

    @property
    def scope(self) -> Scope:
        """Return what its activity and memory were measured on."""
        return Scope.DEVICE if self.gpu_instance is None else Scope.SLICE


@dataclass(frozen=True, slots=True)
class Quantity:
    """Unit in which a source states a value, and what can be true."""

    most: int  # in the unit that is stored; more is impossible
    factor: float = 1  # from the source's unit to the stored one
    least: int = 0


def stored_value(value: object, quantity: Quantity) -> int | None:
    """Return a value in the unit that is stored; None if it is unknown.

    Not a number, infinite, blank (DCGM writes 2^63 less a few for what it cannot read) or impossible is unknown.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    scaled = round(value * quantity.factor)
    return scaled if quantity.least <= scaled <= quantity.most else None
