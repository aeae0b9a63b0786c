"""Pages of a lease's web terminal and of a simulated lease's program."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render

from broker.domain.geometry.host_resources import format_cpus, format_size
from broker.domain.simulated_box.box_facts import BoxFacts
from broker.models import Lease
from broker.provisioners.simulated_programs import box_facts
from broker.services.leases.lease_connections import is_simulated
from broker.services.leases.provision_specs import load_provision_spec
from web.portal.leases.lease_pages import find_lease_row
from web.portal.leases.lease_table import LeaseRow
from web.portal.page_context import PageRequest, require_in_project, tenant_page


@dataclass(frozen=True, slots=True)
class TerminalPage:
    """Terminal of one lease."""

    row: LeaseRow
    url: str  # of its WebSocket
    simulated: bool

    @property
    def lease(self) -> Lease:
        return self.row.lease


@dataclass(frozen=True, slots=True)
class SimulatedProgramPage:
    """Page in place of the program of a simulated lease."""

    lease: Lease
    label: str  # JupyterLab
    facts: BoxFacts

    @property
    def gpus(self) -> list[str]:
        """Return a line per GPU or slice: its name, profile and memory."""
        return [
            " · ".join(word for word in (gpu.name, gpu.profile, format_size(gpu.memory_mib)) if word)
            for gpu in self.facts.gpus
        ]

    @property
    def cpus(self) -> str:
        return format_cpus(self.facts.cpu_milli)

    @property
    def memory(self) -> str:
        return format_size(self.facts.memory_mib)

    @property
    def scratch(self) -> str:
        return format_size(self.facts.scratch_mib)


@tenant_page("leases.read")
def show_terminal(request: PageRequest, pk: str) -> HttpResponse:
    """Show the terminal of a lease; without an active lease, why there is none."""
    row = find_lease_row(request, pk)
    require_in_project(request, "leases.write", row.lease.project)
    url = f"{settings.TERMINALS_URL}/api/v1/terminals/{row.lease.pk}"
    page = TerminalPage(row, url, simulated=is_simulated(row.lease))
    return render(request, "leases/terminal.html", {"page": page})


@tenant_page("leases.read")
def show_simulated_page(request: PageRequest, pk: str) -> HttpResponse:
    """Show what an active simulated lease's link opens; for any other lease its own page."""
    row = find_lease_row(request, pk)
    require_in_project(request, "leases.write", row.lease.project)
    template = row.lease.workload_template
    if not row.active or template is None or not is_simulated(row.lease):
        return redirect("lease", pk=row.lease.pk)
    facts = box_facts(load_provision_spec(row.lease))
    page = SimulatedProgramPage(row.lease, template.label, facts)
    return render(request, "leases/simulated_page.html", {"page": page})
