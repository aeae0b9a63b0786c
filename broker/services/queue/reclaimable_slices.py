"""Slices that spot leases hold or that are being freed, in a pool."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.placement.spot_reclaim import ReclaimableLease
from broker.services.inventory.gpu_catalogue import profile_named
from broker.services.placement.placement_gpus import PoolKey
from broker.services.queue.gpu_reservations import ENDING_TIMEOUT
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope


class ReclaimableSlice(NamedTuple):
    """A row of `reclaimable_slices.sql`."""

    gpu_id: str
    profile: str
    isolation: str
    start: int
    lease_id: str
    tenant_id: str
    weight: int  # thousandths of a quota unit that its lease uses
    active_at: datetime
    notice_s: int
    is_freed: bool
    is_reclaimable: bool


@dataclass
class ReclaimableSlices:
    """What could become free in a pool, by GPU, and whose it is."""

    freed: Mapping[str, tuple[PlacedSlice, ...]] = field(default_factory=dict)  # without any notice, by GPU
    leases: Sequence[ReclaimableLease] = ()
    tenants: Mapping[str, str] = field(default_factory=dict)  # by lease
    notices: Mapping[str, timedelta] = field(default_factory=dict)  # by lease

    def on_gpus(self, lease_ids: Collection[str]) -> dict[str, list[PlacedSlice]]:
        """Return what is freed on each GPU if these leases end as well."""
        slices = defaultdict[str, list[PlacedSlice]](list)
        for gpu, its in self.freed.items():
            slices[gpu] += its
        for lease in self.leases:
            for gpu, held in lease.slices if lease.lease_id in lease_ids else ():
                slices[gpu].append(held)
        return slices


def load_reclaimable_slices(pool: PoolKey, *, now: datetime) -> ReclaimableSlices:
    """Read what could become free in a pool, of all tenants."""
    model, region = pool
    values = {"model": model, "region": region, "now": now, "stuck": now - ENDING_TIMEOUT}
    with system_scope():
        rows = [ReclaimableSlice(*row) for row in query_rows("broker/queue/reclaimable_slices", values)]
    freed = defaultdict[str, list[PlacedSlice]](list)
    by_lease = defaultdict[str, list[ReclaimableSlice]](list)
    for row in rows:
        if row.is_reclaimable:
            by_lease[row.lease_id].append(row)
        else:
            freed[row.gpu_id].append(_placed(model, row))
    return ReclaimableSlices(
        {gpu: tuple(slices) for gpu, slices in freed.items()},
        [_lease(model, its, now) for its in by_lease.values()],
        {lease_id: its[0].tenant_id for lease_id, its in by_lease.items()},
        {lease_id: timedelta(seconds=its[0].notice_s) for lease_id, its in by_lease.items()},
    )


def _lease(model: str, its: Sequence[ReclaimableSlice], now: datetime) -> ReclaimableLease:
    slices = tuple((row.gpu_id, _placed(model, row)) for row in its)
    ran_s = int((now - its[0].active_at).total_seconds())
    return ReclaimableLease(its[0].lease_id, slices, ran_s * its[0].weight)


def _placed(model: str, row: ReclaimableSlice) -> PlacedSlice:
    profile = profile_named(model, row.profile, row.isolation)
    return PlacedSlice(profile.placed_at(row.start), profile)
