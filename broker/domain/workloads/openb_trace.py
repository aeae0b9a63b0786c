"""Map requests of the openb trace to our GPUs.

This is mapping C7: compute share with 2 % slack.
"""

from dataclasses import dataclass

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation

# The most thousandths of a GPU that a number of compute slices (of seven) serves.
C7 = ((163, 1), (306, 2), (449, 3), (592, 4))


@dataclass(frozen=True, slots=True)
class TraceLease:
    """One lease of the trace: a profile, and how many together on one node."""

    profile: Profile
    count: int


def map_trace_request(*, num_gpu: int, gpu_milli: int, model: GpuModelSpec) -> TraceLease:
    """Map a trace request to the smallest sufficient slice, else to whole GPUs."""
    if num_gpu < 1 or not 0 < gpu_milli <= 1000:
        raise ValueError(f"a request for {num_gpu} GPU of {gpu_milli} thousandths is not a request for GPUs")
    if num_gpu == 1:
        for most, compute in C7:
            if gpu_milli <= most:
                return TraceLease(_slice(model, compute), 1)
    return TraceLease(model.whole, num_gpu)


def _slice(model: GpuModelSpec, compute: int) -> Profile:
    sizes = [each for each in model.profiles_with(Isolation.HARDWARE) if each.compute == compute]
    if not sizes:
        raise ValueError(f"{model.name} has no slice of {compute} compute slices, which mapping C7 needs")
    return min(sizes, key=lambda each: (each.memory, each.media))
