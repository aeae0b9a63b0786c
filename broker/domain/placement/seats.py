"""A place on one card."""

from dataclasses import dataclass

from broker.domain.profiles import Placement


@dataclass(frozen=True, slots=True)
class Seat:
    """A place for one slice."""

    gpu: str
    placement: Placement
