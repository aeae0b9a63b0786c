"""Web terminal of a lease, and the page that stands in for a simulated lease's program."""

from dataclasses import dataclass

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.workloads.templates import TEMPLATES
from broker.models import Lease
from broker.provisioners.simulated_box_facts import load_box_facts
from broker.services.leases.lease_connections import is_simulated
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.errors import ObjectNotFound
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
    """Show what a simulated lease's link opens, and say that it is simulated."""
    row = find_lease_row(request, pk)
    require_in_project(request, "leases.write", row.lease.project)
    template = TEMPLATES.get(row.lease.workload)
    if not row.active or template is None or not is_simulated(row.lease):
        raise ObjectNotFound(
            _("Only an active lease in a simulated cluster has this page."), fix=_("Open the lease's own page.")
        )
    facts = load_box_facts(load_provision_spec(row.lease))
    page = SimulatedProgramPage(row.lease, template.label, facts)
    return render(request, "leases/simulated_page.html", {"page": page})
