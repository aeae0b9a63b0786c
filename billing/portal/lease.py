"""One lease: its life with durations, what it costs, where it lies, and the two things one does to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from billing.domain.money import Money, exponent_of, to_minor_up
from billing.domain.pricing import cost
from billing.portal import calls, costs, seats, timeline
from billing.portal.events import named
from billing.portal.pages import PageRequest, may, must, page
from billing.portal.rows import ENDING, Row, loaded, rows
from broker.domain.states import EndReason, LeaseState
from broker.domain.workloads import TEMPLATES
from broker.models import Lease, Transition
from broker.services.connections import connections
from broker.services.leases import allowing, ending, growing, stopping
from tenants.services.refusals import Invalid, Missing, Refused

HOURS = (1, 2, 8, 24)


def found(request: PageRequest, lease_id: str) -> Row:
    """Return the lease's row; one the visitor may not see is missing, like one that never was."""
    listed = list(loaded(Lease.objects.for_tenant(request.tenant).filter(pk=lease_id)))
    if not listed or not request.roles.may("leases.read", listed[0].project.path):
        raise Missing("There is no such lease here.", fix="Look it up in the list of leases.")
    return rows(listed, currency=request.tenant.currency, now=request.now)[0]


@require_GET
@page("leases.read")
def lease(request: PageRequest, pk: str) -> HttpResponse:
    row = found(request, pk)
    steps = list(Transition.objects.filter(lease_id=row.lease.pk).order_by("seq"))
    drawings, more = seats.held(row.lease)
    # What opens a lease is for those who may use it, not for those who may look.
    may_use = request.roles.may("leases.write", row.lease.project.path)
    ways_in = connections(row.lease) if may_use else []
    shown = {
        "row": row,
        "lease": row.lease,
        "now": request.now,
        "dots": timeline.dots(row, steps, now=request.now),
        "transitions": [Passed.of(step) for step in reversed(steps)],
        "stretches": costs.stretches(
            steps,
            tenant=request.tenant.pk,
            currency=request.tenant.currency,
            now=row.charged_until,
            promised=row.promised,
        ),
        "most": at_most(row, row.lease.max_duration_s),
        "left_s": max(row.lease.max_duration_s - row.lease.spent_s, 0),
        "drawings": drawings,
        "more_cards": more,
        "may_write": may_use,
        "ways_in": ways_in,
        "no_way_in": may_use and not ways_in and row.active and listens(row.lease),
        "ending": row.lease.state in ENDING,
        "open_move": allowing.open_move(row.lease),
        "extensions": extensions(row),
        "call": calls.get(f"/leases/{row.lease.pk}"),
        "call_transitions": calls.get(f"/leases/{row.lease.pk}/transitions"),
        "call_stop": calls.post(f"/leases/{row.lease.pk}/stop", {}),
        "call_start": calls.post(f"/leases/{row.lease.pk}/start", {}),
        "call_release": calls.post(f"/leases/{row.lease.pk}/release", {}),
    }
    return render(request, "billing/lease.html", shown)


def listens(lease: Lease) -> bool:
    """Tell whether what runs on it is something that people connect to."""
    template = TEMPLATES.get(lease.workload)
    return template is not None and bool(template.ports)


@require_GET
@page("leases.read")
def row(request: PageRequest, pk: str) -> HttpResponse:
    """One row of a table of leases, asked for again while it is under way."""
    found_row = found(request, pk)
    shown = {"row": found_row, "now": request.now, "may_write": may(request, "leases.write")}
    return render(request, "billing/leases/_row.html", shown)


@require_http_methods(["GET", "POST"])
@page("leases.read")
def extend(request: PageRequest, pk: str) -> HttpResponse:
    """Let it last longer, from the lease's page or from a page of its own."""
    row = found(request, pk)
    must(request, "leases.write", row.lease.project)
    error = ""
    if request.method == "POST":
        try:
            more_s = whole_hours(request.POST.get("hours", "")) * 3600
            longer = growing.extend(row.lease, more_s=more_s, actor=request.actor, now=request.now)
        except Refused as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            until = f" Stops at {local(longer.ends_at)}." if longer.ends_at else ""
            messages.success(request, f"{longer.name} is extended by {more_s // 3600} h.{until}")
            return redirect("lease", pk=longer.pk)
    shown = {
        "row": row,
        "lease": row.lease,
        "now": request.now,
        "extensions": extensions(row),
        "error": error,
    }
    return render(request, "billing/lease_extend.html", shown, status=409 if error else 200)


@require_http_methods(["GET", "POST"])
@page("leases.read")
def release(request: PageRequest, pk: str) -> HttpResponse:
    """End it, after one has seen what that means."""
    row = found(request, pk)
    must(request, "leases.write", row.lease.project)
    if request.method == "POST":
        ending.release(row.lease, reason=EndReason.BY_TENANT, actor=request.actor, now=request.now)
        messages.success(request, f"{row.lease.name} is being released. Nothing is charged from now on.")
        return redirect("lease", pk=row.lease.pk)
    shown = {"row": row, "lease": row.lease, "now": request.now}
    return render(request, "billing/lease_release.html", shown)


@require_http_methods(["GET", "POST"])
@page("leases.read")
def stop(request: PageRequest, pk: str) -> HttpResponse:
    """Take it off its card and keep its volume, after one has seen what that means."""
    row = found(request, pk)
    must(request, "leases.write", row.lease.project)
    error = ""
    if request.method == "POST":
        try:
            stopping.stop(row.lease, actor=request.actor, now=request.now)
        except Refused as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(
                request, f"{row.lease.name} is being stopped. Nothing is charged until it is started."
            )
            return redirect("lease", pk=row.lease.pk)
    shown = {"row": row, "lease": row.lease, "now": request.now, "error": error}
    return render(request, "billing/lease_stop.html", shown, status=409 if error else 200)


@require_http_methods(["GET", "POST"])
@page("leases.read")
def move(request: PageRequest, pk: str) -> HttpResponse:
    """Say whether it may be moved to another card, after one has seen what that means."""
    row = found(request, pk)
    must(request, "leases.write", row.lease.project)
    # What the button said, not the opposite of what is: it may have been pressed elsewhere meanwhile.
    error, movable = "", request.POST.get("movable") == "yes"
    if request.method == "POST":
        try:
            allowing.allow_moves(row.lease, movable, actor=request.actor, now=request.now)
        except Refused as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            may_be = "may be moved to another card, after notice" if movable else "stays on its card"
            messages.success(request, f"{row.lease.name} {may_be}.")
            return redirect("lease", pk=row.lease.pk)
    shown = {"row": row, "lease": row.lease, "now": request.now, "error": error}
    return render(request, "billing/lease_move.html", shown, status=409 if error else 200)


@require_http_methods(["GET", "POST"])
@page("leases.read")
def start(request: PageRequest, pk: str) -> HttpResponse:
    """Queue a stopped one again, after one has seen at what price."""
    row = found(request, pk)
    must(request, "leases.write", row.lease.project)
    error = ""
    if request.method == "POST":
        try:
            stopping.start(row.lease, actor=request.actor, now=request.now)
        except Refused as refusal:
            error = f"{refusal.detail} {refusal.fix.text}"
        else:
            messages.success(
                request, f"{row.lease.name} waits for its slice. It is charged once it is active."
            )
            return redirect("lease", pk=row.lease.pk)
    left_s = max(row.lease.max_duration_s - row.lease.spent_s, 0)
    shown = {
        "row": row,
        "lease": row.lease,
        "now": request.now,
        "error": error,
        "left_s": left_s,
        "most": at_most(row, left_s),
    }
    return render(request, "billing/lease_start.html", shown, status=409 if error else 200)


@dataclass(frozen=True)
class Passed:
    """One line of the table of transitions."""

    at: datetime
    before: str
    after: str
    cause: str
    by: str
    charged: bool

    @classmethod
    def of(cls, step: Transition) -> "Passed":
        charged = step.after == LeaseState.ACTIVE
        return cls(step.at, step.before, step.after, step.cause, named(step), charged)


def at_most(row: Row, seconds: int) -> Money | None:
    """Return what so many seconds cost at the present price, rounded up."""
    if row.nano_per_hour is None:
        return None
    exact = cost(seconds, quantity=1, nano_per_hour=row.nano_per_hour)
    return Money(to_minor_up(exact, exponent_of(row.currency)), row.currency)


def extensions(row: Row) -> Sequence[dict[str, Any]]:
    """Return by how many hours it may be extended, with what each costs at most."""
    return [
        {"hours": hours, "most": at_most(row, hours * 3600), "until": later(row.lease, hours)}
        for hours in HOURS
    ]


def later(lease: Lease, hours: int) -> datetime | None:
    return lease.ends_at + timedelta(hours=hours) if lease.ends_at else None


def whole_hours(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise Invalid("hours", "That is no whole number of hours.", fix="Choose from the list.")
    return int(text)


def local(at: datetime) -> str:
    here = timezone.localtime(at)
    return f"{here:%H:%M} on {here.day} {here:%b}"
