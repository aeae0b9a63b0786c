"""Summary figures of the fleet for the page layout. Must run as staff."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.lifecycle.states import LeaseState
from broker.services.reports.gpu_usage import CHARGED, SCALE, FleetGpu, gpus_by_use, only_gpus
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """Fleet totals; `sold` counts GPUs in parts of SCALE, leases also those without a GPU."""

    clusters: int
    gpus: int
    active: int
    tenants: int
    sold: int

    @property
    def sold_permille(self) -> int:
        return permille_of(self.sold, self.gpus * SCALE)


def load_summary() -> FleetSummary:
    """Return the fleet's size and how much of it is sold; one query."""
    (totals,) = query_rows("broker/reports/fleet_summary", {"scale": SCALE, "cpu": CPU_MODEL_NAME})
    return FleetSummary(*totals)


def summarise(gpus: Sequence[FleetGpu]) -> FleetSummary:
    """Return the same for a fleet that is loaded already."""
    held = [s for gpu in gpus for s in gpu.slices if s.state is LeaseState.ACTIVE]
    used = gpus_by_use(gpus)
    return FleetSummary(
        clusters=len({gpu.cluster for gpu in gpus}),
        gpus=len(only_gpus(gpus)),
        active=len({s.lease for s in held}),
        tenants=len({s.tenant for s in held}),
        sold=sum(used[use] for use in CHARGED),
    )


def permille_of(part: int, whole: int) -> int:
    """Return thousandths, rounded half up; 0 of 0 is 0."""
    return (part * 2000 + whole) // (2 * whole) if whole else 0
