"""Readings of this node's GPUs and MIG devices from NVML.

Whatever a card or driver cannot tell is unknown, never zero. Activity comes from GPM where there is one (Hopper and
later), which also measures MIG devices; older cards state the utilisation of the whole GPU, and none with MIG on.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pynvml

from broker.domain.telemetry.readings import GpuReading, Quantity, stored_value

UNKNOWN = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
}
PER_MILLE_OF_PERCENT = Quantity(1000, factor=10)
MIB = Quantity(2**24, factor=1 / 2**20)
TENTHS_OF_WATTS = Quantity(50_000, factor=0.01)  # NVML states milliwatts
BYTES_OF_MIB = Quantity(2**43, factor=2**20)
# Field of a reading, and the GPM metric it comes from.
GPM_METRICS = (
    ("engine_active", pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, PER_MILLE_OF_PERCENT),
    ("sm_active", pynvml.NVML_GPM_METRIC_SM_UTIL, PER_MILLE_OF_PERCENT),
    ("tensor_active", pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL, PER_MILLE_OF_PERCENT),
    ("dram_active", pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL, PER_MILLE_OF_PERCENT),
    ("pcie_tx_bytes", pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC, BYTES_OF_MIB),
    ("pcie_rx_bytes", pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC, BYTES_OF_MIB),
)


class GpuLost(Exception):
    """A GPU no longer answers; the message names it and says why."""


@dataclass(slots=True)
class NvmlReader:
    """Reads all GPUs again and again; GPM needs the sample of before.

    NVML must be initialised by whoever uses it.
    """

    _before: dict[tuple[str, int | None], Any] = field(default_factory=dict)  # GPM samples

    def read(self, *, at: datetime) -> tuple[list[GpuReading], list[GpuLost]]:
        """Return readings of every GPU and MIG device, and the GPUs that are lost."""
        readings: list[GpuReading] = []
        lost: list[GpuLost] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                device = pynvml.nvmlDeviceGetHandleByIndex(index)
                uuid = _text(pynvml.nvmlDeviceGetUUID(device))
                readings.extend(self._read_gpu(device, uuid, at))
            except pynvml.NVMLError as error:
                lost.append(GpuLost(f"GPU {index}: {error}"))
        return readings, lost

    def _read_gpu(self, device: Any, uuid: str, at: datetime) -> Iterator[GpuReading]:
        devices = list(_mig_devices(device))
        utilisation = None if devices else _known(lambda: pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
        activity = {"engine_active": stored_value(utilisation, PER_MILLE_OF_PERCENT)} | self._activity(device, uuid)
        yield GpuReading(uuid, at, **activity, **_of_the_whole_gpu(device))
        for instance, mig in devices:
            memory = _memory_used(mig)
            yield GpuReading(uuid, at, instance, memory_used_mib=memory, **self._activity(device, uuid, instance))

    def _activity(self, device: Any, uuid: str, instance: int | None = None) -> dict[str, int | None]:
        """Return what GPM measured since the last reading; empty without one."""
        sample = _known(lambda: _gpm_sample(device, instance))
        before = self._before.pop((uuid, instance), None)
        if sample is None:
            return {}
        self._before[uuid, instance] = sample
        if before is None:
            return {}
        measured = _known(lambda: pynvml.nvmlGpmMetricsGet(_gpm_request(before, sample)))
        pynvml.nvmlGpmSampleFree(before)
        if measured is None:
            return {}
        found = zip(GPM_METRICS, measured.metrics, strict=False)
        return {
            name: stored_value(metric.value, quantity)
            for (name, _, quantity), metric in found
            if metric.nvmlReturn == pynvml.NVML_SUCCESS
        }


def _of_the_whole_gpu(device: Any) -> dict[str, int | None]:
    """Return memory, power, energy, temperature, clock and throttle reasons."""
    return {
        "memory_used_mib": _memory_used(device),
        "power_dw": stored_value(_known(lambda: pynvml.nvmlDeviceGetPowerUsage(device)), TENTHS_OF_WATTS),
        "energy_mj": stored_value(_known(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(device)), Quantity(2**62)),
        "temperature_c": stored_value(
            _known(lambda: pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)), Quantity(150)
        ),
        "sm_clock_mhz": stored_value(
            _known(lambda: pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM)), Quantity(10_000)
        ),
        "throttle_reasons": stored_value(
            _known(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(device)), Quantity(2**31 - 1)
        ),
    }


def _memory_used(device: Any) -> int | None:
    return stored_value(_known(lambda: pynvml.nvmlDeviceGetMemoryInfo(device).used), MIB)


def _mig_devices(device: Any) -> Iterator[tuple[int, Any]]:
    """Return the GPU instance ids and handles of the MIG devices there are."""
    mode = _known(lambda: pynvml.nvmlDeviceGetMigMode(device))
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        with suppress(pynvml.NVMLError_NotFound):
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            yield pynvml.nvmlDeviceGetGpuInstanceId(mig), mig


def _gpm_sample(device: Any, instance: int | None) -> Any:
    """Take a GPM sample; None where there is no GPM."""
    if not pynvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice:
        return None
    sample = pynvml.nvmlGpmSampleAlloc()
    try:
        if instance is None:
            return pynvml.nvmlGpmSampleGet(device, sample)
        return pynvml.nvmlGpmMigSampleGet(device, instance, sample)
    except pynvml.NVMLError:
        pynvml.nvmlGpmSampleFree(sample)
        raise


def _gpm_request(before: Any, now: Any) -> Any:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(GPM_METRICS)
    request.sample1, request.sample2 = before, now
    for metric, (_, number, _) in zip(request.metrics, GPM_METRICS, strict=False):
        metric.metricId = number
    return request


def _known(ask: Callable[[], Any]) -> Any:
    """Return an answer; None if this card or driver has none."""
    try:
        return ask()
    except pynvml.NVMLError as error:
        if error.value in UNKNOWN:
            return None
        raise


def _text(answer: bytes | str) -> str:
    return answer.decode() if isinstance(answer, bytes) else answer
