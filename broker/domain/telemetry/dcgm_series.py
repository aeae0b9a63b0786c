"""Readings and XIDs from the series of dcgm-exporter 2.x to 4.x.

Sources of the forms: tests/vendors/dcgm_metrics.txt. What differs between versions and installations:
- an idle GPU has empty labels of a pod, or none; a scrape may rename a workload's labels to exported_*;
- the host's label is Hostname or hostname, and names the node or the exporter's pod, so it identifies nothing;
- MIG devices have GPU_I_ID and GPU_I_PROFILE, no GPU_UTIL, and the power, energy and temperature of their GPU;
- a GPU that several pods share has one series per pod with the same value;
- what cannot be read is left out, or a number near 2^63.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from broker.domain.telemetry.readings import GpuReading, Quantity, stored_value

PER_MILLE = Quantity(1000, factor=1000)
MIB = Quantity(2**24)
MHZ = Quantity(10_000)
BYTES_PER_SECOND = Quantity(2**43)
# Field of a reading, and the series it comes from. Of two for the same field, the first that a GPU has counts.
FIELDS: tuple[tuple[str, str, Quantity], ...] = (
    ("engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", PER_MILLE),
    ("engine_active", "DCGM_FI_DEV_GPU_UTIL", Quantity(1000, factor=10)),
    ("sm_active", "DCGM_FI_PROF_SM_ACTIVE", PER_MILLE),
    ("tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", PER_MILLE),
    ("dram_active", "DCGM_FI_PROF_DRAM_ACTIVE", PER_MILLE),
    ("memory_used_mib", "DCGM_FI_DEV_FB_USED", MIB),
    ("power_dw", "DCGM_FI_DEV_POWER_USAGE", Quantity(50_000, factor=10)),
    ("temperature_c", "DCGM_FI_DEV_GPU_TEMP", Quantity(150)),
    ("sm_clock_mhz", "DCGM_FI_DEV_SM_CLOCK", MHZ),
    ("throttle_reasons", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Quantity(2**31)),
    ("throttle_reasons", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Quantity(2**31)),
    ("energy_mj", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Quantity(2**62)),
    ("pcie_rx_bytes", "DCGM_FI_PROF_PCIE_RX_BYTES", BYTES_PER_SECOND),
    ("pcie_tx_bytes", "DCGM_FI_PROF_PCIE_TX_BYTES", BYTES_PER_SECOND),
)
SOURCES = {series: (name, quantity, order) for order, (name, series, quantity) in enumerate(FIELDS)}
LAST_XID, COUNTED_XIDS = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
NOT_ON_MIG = frozenset({"DCGM_FI_DEV_GPU_UTIL"})  # means nothing there
PARENT_ONLY = frozenset({"power_dw", "energy_mj", "temperature_c", "sm_clock_mhz", "throttle_reasons"})


@dataclass(frozen=True, slots=True)
class Series:
    """One series with its latest value, as Prometheus or the exporter has it."""

    name: str
    labels: Mapping[str, str]
    value: float
    at: datetime


@dataclass(frozen=True, slots=True)
class XidSeries:
    """An XID that a GPU reports.

    `count` is None where the exporter states only the last code, which stays until it restarts.
    """

    gpu_uuid: str
    gpu_instance: int | None
    xid: int
    at: datetime
    count: int | None = None


@dataclass(slots=True)
class _Device:
    at: datetime
    values: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)  # by field: which of its sources was taken


def read_series(series: Iterable[Series]) -> list[GpuReading]:
    """Return one reading per GPU and MIG device, whatever the version.

    Values of a whole GPU that are repeated for each of its MIG devices become one reading of the GPU.
    """
    devices: dict[tuple[str, int | None], _Device] = {}
    for each in series:
        known = SOURCES.get(each.name)
        identity = _identity(each.labels)
        if known is None or identity is None:
            continue
        name, quantity, order = known
        uuid, instance = identity
        if instance is not None and each.name in NOT_ON_MIG:
            continue
        value = stored_value(each.value, quantity)
        if value is None:
            continue
        device = devices.setdefault((uuid, None if name in PARENT_ONLY else instance), _Device(each.at))
        device.at = max(device.at, each.at)
        before = device.order.get(name, len(FIELDS))
        if order < before:
            device.values[name], device.order[name] = value, order
        elif order == before:  # repeated for each pod or MIG device, some read a moment later
            device.values[name] = max(device.values[name], value)
    return [GpuReading(uuid, device.at, instance, **device.values) for (uuid, instance), device in devices.items()]


def read_xids(series: Iterable[Series]) -> Iterator[XidSeries]:
    """Return the XIDs that GPUs report, once per GPU, MIG device and code."""
    seen = set()
    for each in series:
        identity = _identity(each.labels)
        if each.name not in (LAST_XID, COUNTED_XIDS) or identity is None or not each.value > 0:
            continue
        counted = each.name == COUNTED_XIDS
        code = _whole(each.labels.get("xid", "") if counted else str(int(each.value)))
        if code and (each.name, *identity, code) not in seen:
            seen.add((each.name, *identity, code))
            yield XidSeries(*identity, code, each.at, int(each.value) if counted else None)


def _identity(labels: Mapping[str, str]) -> tuple[str, int | None] | None:
    """Return a series' GPU and GPU instance; None if it names no GPU."""
    uuid = labels.get("UUID", "")
    if not uuid.startswith("GPU-"):
        return None
    return uuid, _whole(labels.get("GPU_I_ID", ""))


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
