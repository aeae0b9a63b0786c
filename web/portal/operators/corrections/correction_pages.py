"""Correction pages: the list with a form to propose one, and one with its diff."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.models import Correction, PriceVersion, TenantCorrection
from billing.models.corrections import CorrectionStatus
from billing.services.catalogue import price_list
from billing.services.invoicing.corrections import correction_approvals, correction_proposals
from broker.models import Lease, Offering
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import staff_scope
from web.http.middleware import set_rejection_reason
from web.portal.actions import API_PAGE_SIZE, ListPage, list_page, operator_api_call
from web.portal.kept_forms import show_kept_form
from web.portal.operators.corrections import correction_choices
from web.portal.operators.corrections.correction_list import CORRECTION_LIST
from web.portal.operators.operator_lists import read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page

FIELDS = ("what", "lease", "version", "price", "since", "until", "reason")
TIME_LABELS = {"since": gettext_noop("From"), "until": gettext_noop("Until")}
RUN_NAMES = {"since": "run_since", "until": "run_until"}  # in the address, where days filter the list
MAX_VERSION_DIGITS = 18


@operator_page("corrections", methods=SAFE_OR_POST)
def list_corrections(request: OperatorRequest) -> Any:
    """List corrections, latest first; a POST proposes one and leads to its diff."""
    refusal: ProblemError | None = None
    if request.method == "POST":
        try:
            made = _propose_correction(request)
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
            show_kept_form(request, getattr(problem, "field", ""))
        else:
            return redirect("ops-correction", pk=made.pk)
    asked = {name: request.POST.get(name, request.GET.get(RUN_NAMES.get(name, name), "")) for name in FIELDS}
    typed = {name: text.replace("\x00", "").strip()[:200] for name, text in asked.items()}
    with staff_scope():
        lists = read_lists(request, CORRECTION_LIST)
        rows = Correction.objects.select_related("price_version__offering").order_by("-proposed_at", "-pk")
        if wants_csv(request):
            return lists.csv((CORRECTION_LIST, lambda: rows))
        context = {
            "listing": lists.read(CORRECTION_LIST, rows),
            "filter": lists.count_states(CORRECTION_LIST, rows),
            "refusal": refusal,
            "typed": typed,
            "picked": correction_choices.correctable_lease(typed["lease"], now=request.now),
            "versions": correction_choices.version_choices(),
            "calls": [operator_api_call(_("Corrections"), "ops/corrections", limit=API_PAGE_SIZE)],
        }
        return render(
            request, "operators/corrections/corrections.html", context, status=refusal.status if refusal else 200
        )


@operator_page("correction", methods=SAFE_OR_POST)
def show_correction(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a correction; a POST approves what the page showed, or withdraws it."""
    found = _find_correction(pk)
    return form_page(
        request,
        "operators/corrections/correction.html",
        lambda _: build_correction_page(request, _find_correction(pk)),
        lambda: _decide_correction(request, found),
        back=reverse("ops-correction", args=[pk]),
    )


def _find_correction(pk: str) -> Correction:
    rows = Correction.objects.select_related("price_version__offering")
    return find_row(rows, pk, _("Correction"), fix=_("Select it from the list of corrections."))


def _propose_correction(request: OperatorRequest) -> Correction:
    proposal: dict[str, Any] = {
        "since": _parse_moment(request, "since"),
        "until": _parse_moment(request, "until"),
        "why": request.POST.get("reason", ""),
        "actor": request.actor,
        "now": request.now,
    }
    if request.POST.get("what") == "price":
        text = request.POST.get("version", "").strip()
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_VERSION_DIGITS else 0
        with staff_scope():
            version = PriceVersion.objects.filter(pk=number).first()
        if version is None:
            raise InvalidValue(
                "version",
                _("Price version {text!r} was not found.").format(text=text),
                fix=_("Copy the ID from the offering's page."),
            )
        nano = price_list.parse_nano_per_hour(request.POST.get("price", ""))
        return correction_proposals.propose_price_correction(version, nano_per_hour=nano, **proposal)
    pk = request.POST.get("lease", "").strip()
    with staff_scope():
        lease = Lease.objects.filter(pk=pk).first()
    if lease is None:
        raise InvalidValue(
            "lease", _("Lease {pk!r} was not found.").format(pk=pk), fix=_("Enter the lease ID, for example lse_….")
        )
    return correction_proposals.propose_lease_correction(lease, charge=request.POST.get("what") == "charge", **proposal)


def _parse_moment(request: OperatorRequest, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(request.POST.get(name, "").strip())
    except ValueError:
        raise InvalidValue(
            name,
            _('"{label}" is not a valid time.').format(label=_(TIME_LABELS[name])),
            fix=_("Enter a UTC time such as 2026-11-21 09:00:00."),
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _decide_correction(request: OperatorRequest, found: Correction) -> str:
    if request.POST.get("verb") == "withdraw":
        correction_proposals.withdraw_correction(found, actor=request.actor, now=request.now)
        return _("Correction withdrawn. Nothing was booked.")
    done = correction_approvals.approve_correction(
        found, seen=request.POST.get("seal", ""), actor=request.actor, now=request.now
    )
    words = {
        CorrectionStatus.PROPOSED: _("Approved. A second approval is required."),
        CorrectionStatus.APPROVED: _("Approved. The correction is being booked tenant by tenant."),
    }
    return words.get(CorrectionStatus(done.status), "Approved and booked.")


@dataclass(frozen=True, slots=True)
class CorrectionPage:
    """One correction with its effect on each tenant's lines."""

    correction: Correction
    shares: list[TenantCorrection]
    listing: ListPage
    labels: dict[str, str]
    own: bool  # the visitor proposed or approved it

    @property
    def open(self) -> bool:
        return self.correction.status == CorrectionStatus.PROPOSED

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This correction"), f"ops/corrections/{self.correction.pk}")]


def build_correction_page(request: OperatorRequest, found: Correction) -> CorrectionPage:
    """Read one page of the lines that a correction changes."""
    shares = list(TenantCorrection.objects.filter(correction=found).select_related("tenant").order_by("tenant__name"))
    shown = list_page(request, [(share, change) for share in shares for change in share.diff])
    offerings = {change["offering"] for _, change in shown.rows}
    return CorrectionPage(
        correction=found,
        shares=shares,
        listing=shown,
        labels=dict(Offering.objects.filter(pk__in=offerings).values_list("pk", "label")),
        own=request.actor.id in (found.author_id, found.approver_id),
    )
