"""What NVML says of the cards of this node. Nothing is changed; MIG may be on or off."""

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_uint
from typing import Any

import pynvml

from broker.domain.card_reports import CardReport, SliceReport

UNSUPPORTED = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT)


class NoCards(Exception):
    """NVML cannot be asked here; its message says why."""


def read() -> list[CardReport]:
    """Ask every card of this node; raises NoCards where there is no driver or it denies an answer."""
    try:
        with _open():
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            if not handles:
                raise NoCards("the driver sees no GPU")
            return [_card(handle) for handle in handles]
    except pynvml.NVMLError as error:
        raise NoCards(str(error)) from error


@contextmanager
def _open() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _card(handle: Any) -> CardReport:
    total = pynvml.nvmlDeviceGetMemoryInfo(handle).total
    return CardReport(
        product=_text(pynvml.nvmlDeviceGetName(handle)),
        pci=f"0x{pynvml.nvmlDeviceGetPciInfo(handle).pciDeviceId:08X}",
        memory_gb=-(-total // 2**30),  # some of it the driver keeps, so the next whole number is the card's
        slices=tuple(_slices(handle)),
    )


def _slices(handle: Any) -> Iterator[SliceReport]:
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number, version=2)
        except pynvml.NVMLError as error:
            if error.value not in UNSUPPORTED:
                raise
            continue
        yield SliceReport(
            name=_text(info.name).removeprefix("MIG "),
            compute=info.sliceCount,
            instances=info.instanceCount,
            places=tuple(_places(handle, info.id)),
        )


def _places(handle: Any, profile: int) -> Iterator[tuple[int, int]]:
    count = c_uint()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, None, byref(count))
    found = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile, found, byref(count))
    for place in found[: count.value]:
        yield place.start, place.size


def _text(answer: bytes | str) -> str:
    return answer.decode() if isinstance(answer, bytes) else answer
