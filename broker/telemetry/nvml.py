"""Read the GPUs of this node from NVML; nothing is changed.

MIG may be on or off.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_uint
from typing import Any

import pynvml

from broker.domain.geometry.gpu_reports import GpuReport, MigProfileReport

UNSUPPORTED = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)


class NvmlUnavailable(Exception):
    """NVML is not available here; the message says why."""


def read_gpus() -> list[GpuReport]:
    """Read every GPU of this node; raise NvmlUnavailable if NVML fails."""
    try:
        with _open():
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            if not handles:
                raise NvmlUnavailable("the driver sees no GPU")
            return [_gpu_report(handle) for handle in handles]
    except pynvml.NVMLError as error:
        raise NvmlUnavailable(str(error)) from error


@contextmanager
def _open() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _gpu_report(handle: Any) -> GpuReport:
    total = pynvml.nvmlDeviceGetMemoryInfo(handle).total
    return GpuReport(
        product=_text(pynvml.nvmlDeviceGetName(handle)),
        pci_device_id=f"0x{pynvml.nvmlDeviceGetPciInfo(handle).pciDeviceId:08X}",
        memory_gb=-(-total // 2**30),  # GiB, rounded up: equals the size in the product name
        mig_profiles=tuple(_mig_profile_reports(handle)),
    )


def _mig_profile_reports(handle: Any) -> Iterator[MigProfileReport]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
        except pynvml.NVMLError as error:
            if error.value not in UNSUPPORTED:
                raise
            continue
        yield MigProfileReport(
            name=_text(info.name).removeprefix("MIG "),
            compute=info.sliceCount,
            max_instances=info.instanceCount,
            placements=tuple(_placements(handle, info.id)),
        )


def _placements(handle: Any, profile: int) -> Iterator[tuple[int, int]]:
    count = c_uint()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, None, byref(count))
    placements = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, placements, byref(count))
    for placement in placements[: count.value]:
        yield placement.start, placement.size


def _text(answer: bytes | str) -> str:
    return answer.decode() if isinstance(answer, bytes) else answer
