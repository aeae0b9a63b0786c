"""How a GPU must be repartitioned for a lease that was just placed on it."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.domain.placement.warm_slices import PartitioningEffort, partitioning_effort
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.placement.placement_gpus import parse_warm_slices
from ports.postgres.sql_statements import fetch_rows, load_sql

GpuSlot = tuple[str, int]  # GPU id, first unit


class OtherSlicesRow(NamedTuple):
    """The slices of one GPU that are not the lease's own."""

    gpu: str
    model: str
    occupied: str | None
    ended: str | None


def required_cut_efforts(places: Sequence[GpuSlot], profile: str, isolation: str) -> list[PartitioningEffort]:
    """Return per slice what must be done on its GPU before it can start."""
    gpus, starts = [gpu for gpu, _ in places], [start for _, start in places]
    values = {"gpus": gpus, "starts": starts}
    rows = {row[0]: OtherSlicesRow(*row) for row in fetch_rows(load_sql("broker/placement/other_slices"), values)}
    efforts = []
    for gpu, start in places:
        row = rows[gpu]
        wanted = profile_named(row.model, profile, isolation)
        warm = parse_warm_slices(row.model, row.occupied or "", row.ended or "")
        efforts.append(partitioning_effort(warm, wanted, wanted.placed_at(start)))
    return efforts
