"""Free capacity of one node with shared GPUs: processors, memory, GPU shares."""

from dataclasses import dataclass
from typing import NamedTuple

WHOLE_MILLI = 1000  # thousandths of one GPU


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """What is requested of one node: milli-processors, MiB, GPUs, and their share.

    The share is in thousandths of each GPU. A part of a GPU is requested on one GPU only, several GPUs
    only whole; no GPU at all is a request too.
    """

    cpu: int
    memory: int
    gpus: int
    share: int

    def __post_init__(self) -> None:
        if min(self.cpu, self.memory, self.gpus, self.share) < 0:
            raise ValueError(f"{self} requests a negative amount")
        if self.share > WHOLE_MILLI or (self.gpus == 0) != (self.share == 0):
            raise ValueError(f"{self} requests {self.share} thousandths of each of {self.gpus} GPUs")
        if self.gpus > 1 and self.share != WHOLE_MILLI:
            raise ValueError(f"{self} requests shares of several GPUs; request each separately")

    @property
    def is_partial(self) -> bool:
        return 0 < self.share < WHOLE_MILLI

    @property
    def total_share(self) -> int:
        """Return the requested thousandths of GPUs in total."""
        return self.gpus * self.share


class HeldShare(NamedTuple):
    """The location of a reserved request: a node and GPUs on it."""

    node: int
    gpus: tuple[int, ...]


class NodeCapacity:
    """The free capacity of one node and of each of its GPUs."""

    __slots__ = ("cpu", "fill_order", "free_by_gpu", "free_milli", "memory", "unused_gpus")

    def __init__(self, *, cpu: int, memory: int, gpus: int, fill_order: float = 0.0) -> None:
        self.cpu, self.memory = cpu, memory
        self.free_by_gpu = [WHOLE_MILLI] * gpus
        self.free_milli, self.unused_gpus = WHOLE_MILLI * gpus, gpus  # total free thousandths; number of unused GPUs
        self.fill_order = fill_order  # from 0 to 1: order in which otherwise equal nodes are filled

    def fits(self, request: ShareRequest) -> bool:
        """Tell whether the request fits on this node."""
        if request.cpu > self.cpu or request.memory > self.memory:
            return False
        if request.is_partial:
            return max(self.free_by_gpu, default=0) >= request.share
        return self.unused_gpus >= request.gpus

    def find_unused_gpus(self, count: int) -> tuple[int, ...]:
        """Return up to this many unused GPUs."""
        return tuple(gpu for gpu, left in enumerate(self.free_by_gpu) if left == WHOLE_MILLI)[:count]

    def reserve(self, request: ShareRequest, gpus: tuple[int, ...]) -> None:
        """Reserve a request on these GPUs; raise ValueError where it does not fit."""
        if request.cpu > self.cpu or request.memory > self.memory or len(gpus) != request.gpus:
            raise ValueError(f"{request} does not fit on the node")
        if any(self.free_by_gpu[gpu] < request.share for gpu in gpus):
            raise ValueError(f"{request} does not fit on GPUs {gpus}, of which {self.free_by_gpu} is left")
        self._change(request, gpus, -1)

    def release(self, request: ShareRequest, gpus: tuple[int, ...]) -> None:
        """Release a request; raise ValueError where the GPUs hold less than it took."""
        if any(self.free_by_gpu[gpu] + request.share > WHOLE_MILLI for gpu in gpus):
            raise ValueError(f"{request} is not held on GPUs {gpus}, of which {self.free_by_gpu} is left")
        self._change(request, gpus, 1)

    def _change(self, request: ShareRequest, gpus: tuple[int, ...], sign: int) -> None:
        self.cpu += sign * request.cpu
        self.memory += sign * request.memory
        self.free_milli += sign * request.share * len(gpus)
        for gpu in gpus:
            self.unused_gpus -= self.free_by_gpu[gpu] == WHOLE_MILLI
            self.free_by_gpu[gpu] += sign * request.share
            self.unused_gpus += self.free_by_gpu[gpu] == WHOLE_MILLI
