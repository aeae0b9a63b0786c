"""Lease actions behind a page: extend, stop, start, release, allow relocation."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from billing.models import ApprovalRequest
from billing.services.approvals import approval_requests
from broker.domain.lifecycle.states import EndReason
from broker.models import Lease
from broker.services.leases import relocation_consent
from broker.services.leases.end_notices import end_terms
from broker.services.leases.end_notices.extension_links import OfferedExtension, read_extension
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.lifecycle import extension, stop_and_start, termination
from tenants.services.errors import InvalidValue, ProblemError
from web.portal.kept_forms import show_kept_form
from web.portal.leases.end_terms_form import EndTermsForm
from web.portal.leases.lease_pages import extension_options, find_lease_row, maximum_cost, remaining_seconds
from web.portal.leases.lease_table import LeaseRow
from web.portal.page_context import GET_OR_POST, PageRequest, require_in_project, tenant_page


@tenant_page("leases.read", methods=GET_OR_POST)
def change_lease(request: PageRequest, pk: str, action: str) -> HttpResponse:
    """Show the page of an action on a lease; a POST takes it."""
    row, step, error = find_lease_row(request, pk), ACTIONS[action], ""
    require_in_project(request, "leases.write", row.lease.project)
    if request.method == "POST":
        try:
            messages.success(request, step.take(request, row.lease))
        except ApprovalRequired:
            asked = ask_approval(request, row.lease, action)
            messages.success(request, _("{name} waits for approval.").format(name=asked.name))
            return redirect("approval", pk=asked.pk)
        except ProblemError as refusal:
            if not step.shows_refusals:
                raise
            error = f"{refusal.detail} {refusal.fix.text}"
            show_kept_form(request, getattr(refusal, "field", "").removesuffix("_s"))
        else:
            return redirect("lease", pk=row.lease.pk)
    elif row.is_ending:  # somebody opened an old link, or the lease ended meanwhile
        messages.warning(
            request, _("{lease_name} has ended; launch a new lease instead.").format(lease_name=row.lease.name)
        )
        return redirect("lease", pk=row.lease.pk)
    shown = {"row": row, "lease": row.lease, "now": request.now, "error": error, **step.figures(request, row)}
    return render(request, f"leases/{action}.html", shown, status=409 if error else 200)


def ask_approval(request: PageRequest, lease: Lease, action: str) -> ApprovalRequest:
    """Request approval of an extension or start that was refused for its size."""
    by: dict[str, Any] = {"actor": request.actor, "now": request.now}
    if action == "start":
        return approval_requests.request_start(lease, **by)
    return approval_requests.request_extension(lease, more_s=wanted_extension(request, lease)[1], **by)


def wanted_extension(request: PageRequest, lease: Lease) -> tuple[OfferedExtension | None, int]:
    """Return the link's offer, if there is one, and the seconds to extend by."""
    offered = read_extension(request.POST.get("offer", ""), lease)
    return offered, (offered.hours if offered else parse_hours(request.POST.get("hours", ""))) * 3600


def extend_lease(request: PageRequest, lease: Lease) -> str:
    offered, more_s = wanted_extension(request, lease)
    expected_end = offered.ends_at if offered else None
    longer = extension.extend_lease(
        lease, more_s=more_s, actor=request.actor, now=request.now, expected_end=expected_end
    )
    until = _(" Stops at {ends_at}.").format(ends_at=format_local(longer.ends_at)) if longer.ends_at else ""
    return _("{longer_name} is extended by {more_s} h.{until}").format(
        longer_name=longer.name, more_s=more_s // 3600, until=until
    )


def stop_lease(request: PageRequest, lease: Lease) -> str:
    stop_and_start.stop_lease(lease, actor=request.actor, now=request.now)
    return _("{lease_name} is being stopped. Nothing is charged until it is started.").format(lease_name=lease.name)


def start_lease(request: PageRequest, lease: Lease) -> str:
    stop_and_start.start_lease(lease, actor=request.actor, now=request.now)
    return _("{lease_name} is queued for its slice. It is charged once active.").format(lease_name=lease.name)


def release_lease(request: PageRequest, lease: Lease) -> str:
    termination.release_lease(lease, reason=EndReason.BY_TENANT, actor=request.actor, now=request.now)
    return _("{lease_name} is being released. Charging has stopped.").format(lease_name=lease.name)


def allow_relocation(request: PageRequest, lease: Lease) -> str:
    # The value of the button, not the opposite of the stored one, which may have changed meanwhile.
    relocatable = request.POST.get("relocatable") == "yes"
    relocation_consent.set_relocatable(lease, relocatable, actor=request.actor, now=request.now)
    return (
        f"{lease.name} {_('can now be moved to another GPU after notice') if relocatable else _('stays on its GPU')}."
    )


def set_end_terms(request: PageRequest, lease: Lease) -> str:
    form = EndTermsForm.of(request.POST)
    by_s, limit_s = form.parse()
    end_terms.set_end_terms(
        lease,
        extend_by_s=by_s,
        extend_limit_s=limit_s,
        notify_on_end=form.notify,
        actor=request.actor,
        now=request.now,
    )
    return _("The end of {lease_name} was changed.").format(lease_name=lease.name)


def extension_figures(request: PageRequest, row: LeaseRow) -> dict[str, Any]:
    offer = request.POST.get("offer", "") or request.GET.get("offer", "")
    offered = read_extension(offer[:500], row.lease)
    valid = offered is not None and offered.ends_at == row.lease.ends_at
    options = extension_options(row, (offered.hours,)) if offered and valid else extension_options(row)
    return {"extensions": options, "offer": offer if valid else "", "offer_expired": bool(offer) and not valid}


def end_terms_figures(request: PageRequest, row: LeaseRow) -> dict[str, Any]:
    form = EndTermsForm.of(request.POST) if request.method == "POST" else EndTermsForm.of_lease(row.lease)
    return {"form": form, "most": maximum_cost(row, row.lease.extend_limit_s)}


def start_figures(request: PageRequest, row: LeaseRow) -> dict[str, Any]:
    left_s = remaining_seconds(row.lease, row.now)
    return {"left_s": left_s, "most": maximum_cost(row, left_s)}


def no_figures(request: PageRequest, row: LeaseRow) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class LeaseAction:
    """What an action on a lease does, and what its page shows."""

    take: Callable[[PageRequest, Lease], str]  # returns what it says once done
    figures: Callable[[PageRequest, LeaseRow], dict[str, Any]] = no_figures
    shows_refusals: bool = True  # else on the error page


ACTIONS = {  # by the name of the page's template
    "extend": LeaseAction(extend_lease, extension_figures),
    "stop": LeaseAction(stop_lease),
    "start": LeaseAction(start_lease, start_figures),
    "release": LeaseAction(release_lease, shows_refusals=False),
    "allow_relocation": LeaseAction(allow_relocation),
    "end_terms": LeaseAction(set_end_terms, end_terms_figures),
}


def parse_hours(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4:
        raise InvalidValue("hours", _("This is not a whole number of hours."), fix=_("Choose from the list."))
    return int(text)


def format_local(at: datetime) -> str:
    here = timezone.localtime(at)
    return _("{here:%H:%M} on {day} {here:%b}").format(here=here, day=here.day)
