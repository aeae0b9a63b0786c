"""Panel of one GPU: its slices, their leases, revenue and ends."""

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.services.reports import earnings
from broker.models import GpuHealth
from broker.services.inventory.gpu_catalogue import model_label
from broker.services.reports import fleet_gpus
from broker.services.reports.gpu_usage import FleetGpu, UnitRun, UnitUse
from tenants.services.errors import ObjectNotFound
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.ui.formatting import short_profile

DRAWING_KINDS = {
    UnitUse.SOLD: "fill-sold",
    UnitUse.SPOT: "fill-spot",
    UnitUse.RESERVED: "reserved",
    UnitUse.FREE: "free-slice",
    UnitUse.FRAGMENTED: "fragmented",
    UnitUse.UNHEALTHY: "unhealthy",
    UnitUse.MAINTENANCE: "maintenance",
}
BAR_KINDS = {UnitUse.FREE: "fill-free"}  # a bar has no outline that would show a free unit
UNLABELLED_KINDS = {"reserved", "fragmented", "unhealthy", "maintenance"}  # text on a pattern is unreadable


@dataclass(frozen=True)
class GpuRunRow:
    """One run of units as a row, with the price of one slice."""

    run: UnitRun
    nano_per_hour: int | None
    currency: str


@dataclass(frozen=True)
class GpuPanel:
    """A GPU with its drawing and its rows."""

    gpu: FleetGpu
    lines: tuple[GpuRunRow, ...]

    @property
    def model(self) -> str:
        return model_label(self.gpu.model)

    @property
    def state(self) -> str:
        """Return the worst state: unhealthy if the GPU is, else the node's."""
        if self.gpu.health is GpuHealth.UNHEALTHY:
            return "unhealthy"
        return "healthy" if self.gpu.node_state == "ready" else self.gpu.node_state.value

    @property
    def spans(self) -> list[tuple[int, int, str, str]]:
        return [(r.start, r.size, DRAWING_KINDS[r.use], self._word(r)) for r in self.gpu.unit_runs]

    @property
    def bar(self) -> list[tuple[str, int]]:
        return [(BAR_KINDS.get(r.use, DRAWING_KINDS[r.use]), r.size) for r in self.gpu.unit_runs]

    @property
    def usage_text(self) -> str:
        return ", ".join(f"{r.size} {r.use}" for r in self.gpu.unit_runs)

    @property
    def free_units(self) -> int:
        return self.gpu.units(UnitUse.FREE)

    def _word(self, run: UnitRun) -> str:
        if run.slice is None or DRAWING_KINDS[run.use] in UNLABELLED_KINDS:
            return ""
        whole = run.size == self.gpu.grid
        return _("whole GPU") if whole and self.gpu.is_gpu else short_profile(run.slice.profile)


def gpu_panel_of(gpu: FleetGpu, priced: dict[str, tuple[int, str]]) -> GpuPanel:
    """Return the panel of a GPU.

    `priced` maps active leases to (10⁻⁹ units an hour, currency).
    """
    unknown = (None, "")
    return GpuPanel(
        gpu,
        tuple(GpuRunRow(r, *(priced.get(r.slice.lease, unknown) if r.slice else unknown)) for r in gpu.unit_runs),
    )


def gpu_panel_now(gpu: FleetGpu, *, now: datetime) -> GpuPanel:
    """Return the panel of a GPU at current prices; one query."""
    return gpu_panel_of(gpu, earnings.hourly_prices_of([s.lease for s in gpu.slices], now=now))


def find_gpu(pk: str) -> FleetGpu:
    """Load one GPU, or raise ObjectNotFound."""
    found = fleet_gpus.load_gpus(gpu=pk)
    if not found:
        raise ObjectNotFound(_("GPU {pk!r} was not found.").format(pk=pk), fix=_("Select it from the list of GPUs."))
    return found[0]


@operator_page("gpu_panel", repeats=True)
def show_gpu_panel(request: OperatorRequest, pk: str) -> HttpResponse:
    """Return the panel of the GPU that is pointed at on the map."""
    return render(request, "operators/fleet/_gpu_panel.html", {"chosen": gpu_panel_now(find_gpu(pk), now=request.now)})
