"""What a request of the openb trace asks for on our cards: mapping C7, compute share with 2 % slack."""

from dataclasses import dataclass

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import Profile
from broker.domain.states import Isolation

# The greatest thousandths of a card that so many compute slices of seven still serve.
C7 = ((163, 1), (306, 2), (449, 3), (592, 4))


@dataclass(frozen=True, slots=True)
class Asked:
    """One lease of the trace: a profile, and how many of it together on one node."""

    profile: Profile
    count: int


def asked(*, num_gpu: int, gpu_milli: int, model: GpuModelSpec) -> Asked:
    """Map a request of the trace to the smallest slice that serves it, else to whole cards."""
    if num_gpu < 1 or not 0 < gpu_milli <= 1000:
        raise ValueError(f"a request for {num_gpu} GPU of {gpu_milli} thousandths is no GPU request")
    if num_gpu == 1:
        for most, compute in C7:
            if gpu_milli <= most:
                return Asked(_slice(model, compute), 1)
    return Asked(model.whole, num_gpu)


def _slice(model: GpuModelSpec, compute: int) -> Profile:
    sizes = [each for each in model.sold_as(Isolation.HARDWARE) if each.compute == compute]
    if not sizes:
        raise ValueError(f"{model.name} has no slice of {compute} compute slices, which mapping C7 needs")
    return min(sizes, key=lambda each: (each.memory, each.media))
