"""Fleet that fills up: requests of 1.3 times its capacity, none of which ends."""

from dataclasses import dataclass

from bench.placement_policies.fleets import Fleet
from bench.placement_policies.gpu_profiles import WEIGHTS
from bench.placement_policies.workloads import Request


@dataclass(frozen=True)
class Filled:
    """Allocated shares of the fleet's compute slices."""

    at_full: float  # when as much had been asked for as there is
    at_end: float
    at_first_refusal: float


def fill(fleet: Fleet, requests: list[Request], gpus: int) -> Filled:
    room, wanted, given = 7 * gpus, 0, 0
    at_full = at_refusal = None
    for number, request in enumerate(requests):
        weight = WEIGHTS[request.profile] * request.count
        wanted += weight
        if fleet.place(number, request):
            given += weight
        elif at_refusal is None:
            at_refusal = given / room
        if at_full is None and wanted >= room:
            at_full = given / room
    end = given / room
    return Filled(end if at_full is None else at_full, end, end if at_refusal is None else at_refusal)
