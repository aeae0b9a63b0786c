"""A slot: a placement on one GPU."""

from dataclasses import dataclass

from broker.domain.geometry.profiles import Placement


@dataclass(frozen=True, slots=True)
class Slot:
    """A placement for one slice on one GPU."""

    gpu: str
    placement: Placement
