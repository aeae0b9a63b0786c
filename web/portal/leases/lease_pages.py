"""Lease page, and one row of the lease table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from csp.decorators import csp_update
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.lease_holds import most_seconds
from billing.domain.money import Money
from billing.domain.pricing import hold_amount
from billing.services.funds.costs import lease_maximums
from billing.services.reports import line_explanations
from broker.domain.lifecycle.states import LeaseState
from broker.domain.workloads.templates import BATCH
from broker.models import Lease, LeaseAttempt, ReclaimNotice, Relocation, Transition
from broker.services.leases import attempt_records, relocation_consent, spot_notices
from broker.services.leases.lease_connections import (
    LeaseConnection,
    is_simulated,
    lease_connections_of,
    sign_in_origins,
)
from tenants.services.errors import ObjectNotFound
from web.http.query_strings import LinkOption
from web.portal.home.recent_events import actor_name
from web.portal.leases import lease_costs, lease_timeline, placement_diagram
from web.portal.leases.end_notices import EndNotice, find_end_notices
from web.portal.leases.lease_table import ENDING_STATES, LeaseRow, lease_rows, prefetch_for_rows
from web.portal.leases.lease_tabs import lease_tabs
from web.portal.page_context import PageRequest, may_in_project, tenant_page

EXTENSION_HOURS = (1, 2, 8, 24)


def find_lease_row(request: PageRequest, lease_id: str) -> LeaseRow:
    """Return the lease's table row, or raise ObjectNotFound if the visitor may not see it."""
    listed = list(prefetch_for_rows(Lease.objects.filter(tenant=request.tenant).filter(pk=lease_id)))
    if not listed or not request.roles.may("leases.read", listed[0].project.path):
        raise ObjectNotFound(_("This lease does not exist."), fix=_("Choose one from the list of leases."))
    return lease_rows(listed, currency=request.tenant.currency, now=request.now)[0]


@tenant_page("leases.read")
def show_lease(request: PageRequest, pk: str) -> HttpResponse:
    page = build_lease_page(request, find_lease_row(request, pk))
    shown = render(request, "leases/lease.html", {"page": page})
    csp_update({"form-action": sign_in_origins(page.lease)})(lambda _: shown)(request)  # marks the response
    return shown


@tenant_page("leases.read")
def show_lease_row(request: PageRequest, pk: str) -> HttpResponse:
    """Return one row of the lease table; the page polls it while the lease changes."""
    found_row = find_lease_row(request, pk)
    shown = {"row": found_row, "may_write": may_in_project(request, "leases.write")}
    return render(request, "leases/_row.html", shown)


@dataclass(frozen=True)
class TransitionRow:
    """One row of the transitions table."""

    at: datetime
    before: str
    after: str
    cause: str
    by: str
    charged: bool

    @classmethod
    def of(cls, step: Transition) -> "TransitionRow":
        charged = step.after == LeaseState.ACTIVE
        return cls(step.at, step.before, step.after, step.cause, actor_name(step), charged)


@dataclass(frozen=True, slots=True)
class LeasePage:
    """One lease with its history, cost and placement."""

    row: LeaseRow
    dots: list[lease_timeline.TimelineDot]
    transitions: list[TransitionRow]  # newest first
    cost_intervals: list[lease_costs.CostInterval]
    drawings: list[placement_diagram.LeaseGpuDrawing]
    more_gpus: int
    tabs: Sequence[LinkOption]
    may_write: bool
    connections: list[LeaseConnection]
    simulated: bool  # no program runs behind it
    relocation: Relocation | None
    attempts: list[LeaseAttempt]  # runs of its batch command that are over
    end_notices: list[EndNotice]  # one while its end is near
    reclaim_notice: ReclaimNotice | None
    explanation_url: str  # of the invoice line that charges it; empty without one
    max_cost: Money | None  # in all; its cost once it is over

    @property
    def lease(self) -> Lease:
        return self.row.lease

    @property
    def ending(self) -> bool:
        return self.lease.state in ENDING_STATES

    @property
    def owns_gpu(self) -> bool:
        """Return whether its hardware-isolated slice is the only one on its GPU."""
        only = self.lease.offering.isolation == "hardware" and len(self.drawings) == 1
        return only and not self.drawings[0].shared

    @property
    def may_connect(self) -> bool:
        """Return whether the visitor may use the lease now."""
        return self.may_write and self.row.active

    @property
    def ports_unreachable(self) -> bool:
        """Return whether there is no way to its ports, although its workload has some."""
        template = self.lease.workload_template
        return not self.connections and template is not None and bool(template.ports)

    @property
    def program_label(self) -> str:
        """Return the name of its template's web program; empty without one."""
        template = self.lease.workload_template
        return template.label if template and any(port.is_http for port in template.ports) else ""

    @property
    def remaining_s(self) -> int:
        return remaining_seconds(self.lease, self.row.now)

    @property
    def extensions(self) -> Sequence[dict[str, Any]]:
        return extension_options(self.row)


def build_lease_page(request: PageRequest, row: LeaseRow) -> LeasePage:
    """Read what the page of one lease shows."""
    steps = list(Transition.objects.filter(lease_id=row.lease.pk).order_by("seq"))
    drawings, more = placement_diagram.lease_drawings(row.lease)
    # Connection details are for those who may use the lease, not for those who may only see it.
    may_use = request.roles.may("leases.write", row.lease.project.path)
    return LeasePage(
        row=row,
        dots=lease_timeline.timeline_dots(row, steps, now=request.now),
        transitions=[TransitionRow.of(step) for step in reversed(steps)],
        cost_intervals=lease_costs.cost_intervals(
            steps,
            tenant=request.tenant.pk,
            currency=request.tenant.currency,
            now=row.charged_until,
            quoted_price=row.quoted_price,
        ),
        drawings=drawings,
        more_gpus=more,
        tabs=lease_tabs(row.lease, "lease"),
        may_write=may_use,
        connections=lease_connections_of(row.lease) if may_use else [],
        simulated=may_use and row.active and is_simulated(row.lease),
        relocation=relocation_consent.announced_relocation(row.lease),
        attempts=list(attempt_records.attempts_of(row.lease)) if row.lease.workload == BATCH.name else [],
        end_notices=find_end_notices(row.lease, now=request.now),
        reclaim_notice=spot_notices.open_notice(row.lease),
        explanation_url=cost_explanation_url(request, row.lease),
        max_cost=lease_maximums.lease_maximum(row.lease, tenant=request.tenant, now=request.now),
    )


def cost_explanation_url(request: PageRequest, lease: Lease) -> str:
    """Return the URL that explains the lease's latest invoice line; empty if not visible."""
    line = line_explanations.find_line_of_lease(lease.pk) if request.roles.may("billing.read") else None
    return f"{reverse('invoice', args=[line.invoice_id])}?line={line.n}" if line else ""


def maximum_cost(row: LeaseRow, seconds: int) -> Money | None:
    """Return the most that so many more seconds cost, as it is held: rounded up."""
    if row.most_nano_per_hour is None:
        return None
    minor = hold_amount(seconds, quantity=1, nano_per_hour=row.most_nano_per_hour, currency=row.currency)
    return Money(minor, row.currency)


def remaining_seconds(lease: Lease, now: datetime) -> int:
    """Return how long it may still run if it is started now."""
    return most_seconds(lease.max_duration_s - lease.active_seconds, since=now, end_date=lease.end_date)


def extension_options(row: LeaseRow, choices: Sequence[int] = EXTENSION_HOURS) -> Sequence[dict[str, Any]]:
    """Return the extensions on offer, each with its maximum cost."""
    return [
        {"hours": hours, "most": maximum_cost(row, hours * 3600), "until": extended_end(row.lease, hours)}
        for hours in choices
    ]


def extended_end(lease: Lease, hours: int) -> datetime | None:
    return lease.ends_at + timedelta(hours=hours) if lease.ends_at else None
