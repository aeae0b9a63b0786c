"""Dispute pages of operators: the list, and one dispute with its answer form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.models import CreditNoteLine, Dispute, DisputeStatus, DisputeStep
from billing.services.invoicing.disputes import dispute_answers, dispute_outcomes, dispute_requests, disputed_usage
from billing.services.payments import disputed_amounts
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.invoices.invoice_pages import InvoiceLineRow, invoice_line_rows
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page

MAX_LEASES = 8  # leases of the line that the page names


def _dispute_cells(each: Dispute) -> tuple[object, ...]:
    amounts = (csv_money(minor, each.currency) for minor in (each.minor, each.tax_minor))
    return (
        *(each.pk, each.status, each.tenant_id, each.tenant.name, str(each.invoice), each.line.n),
        *(csv_time(each.opened_at), csv_time(each.closed_at), each.reason, each.currency, *amounts),
    )


DISPUTE_LIST = OperatorList(
    name="disputes",
    heads="dispute status tenant tenant_name invoice line opened_at closed_at reason currency amount tax",
    cells=_dispute_cells,
    tenant="tenant_id",
    at="opened_at",
    states=(
        ListState("", gettext_lazy("Open"), Q(status=DisputeStatus.OPEN)),
        ListState("all", gettext_lazy("All")),
    ),
    search=("reason", "pk"),
    sums=(ListSum(gettext_lazy("Disputed before VAT"), "minor"),),
)


@operator_page("disputes")
def list_disputes(request: OperatorRequest) -> Any:
    """List open disputes, oldest first, or all of them, newest first."""
    lists = read_lists(request, DISPUTE_LIST)
    waits = not lists.filter.state
    found = Dispute.objects.select_related("tenant", "invoice__period", "line")
    rows: QuerySet[Any] = disputed_amounts.with_open_amounts(found)
    rows = rows.order_by("opened_at", "pk") if waits else rows.order_by("-opened_at", "-pk")
    if wants_csv(request):
        return lists.csv((DISPUTE_LIST, lambda: rows))
    context = {
        "listing": lists.read(DISPUTE_LIST, rows),
        "waits": waits,
        "filter": lists.count_states(DISPUTE_LIST, rows),
        "calls": [
            operator_api_call(
                _("Disputes of all tenants"), "ops/disputes", status="open" if waits else "", limit=API_PAGE_SIZE
            )
        ],
    }
    return render(request, "operators/disputes/disputes.html", context)


@operator_page("dispute", methods=SAFE_OR_POST)
def show_dispute(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a dispute; a POST answers it."""
    found = _find_dispute(pk)
    return form_page(
        request,
        "operators/disputes/dispute.html",
        lambda _: build_dispute_page(_find_dispute(pk)),
        lambda: _answer_dispute(request, found),
        back=reverse("ops-dispute", args=[pk]),
    )


def _find_dispute(pk: str) -> Dispute:
    rows = Dispute.objects.select_related("tenant", "invoice__period", "invoice__tenant", "line", "credit_note")
    with_amounts: QuerySet[Dispute] = disputed_amounts.with_open_amounts(rows)
    return find_row(with_amounts, pk, _("Dispute"), fix=_("Select it from the list of disputes."))


def _answer_dispute(request: OperatorRequest, found: Dispute) -> str:
    answer: dict[str, Any] = {"answer": request.POST.get("answer", ""), "actor": request.actor, "now": request.now}
    if request.POST.get("verb") == "decline":
        dispute_answers.decline_dispute(found, **answer)
        return _("Dispute declined. The tenant sees the reason.")
    typed = request.POST.get("amount", "").strip()
    done = dispute_answers.accept_dispute(
        found, minor=dispute_requests.parse_optional_amount(typed or None, found.currency), **answer
    )
    return _("Dispute accepted. {credit_note} was issued.").format(credit_note=done.credit_note)


@dataclass(frozen=True, slots=True)
class DisputePage:
    """One dispute with the usage behind its line, and its answer."""

    dispute: Dispute
    row: InvoiceLineRow
    given_back: int
    leases: Sequence[disputed_usage.DisputedUsage]
    payment_pending: bool
    steps: list[DisputeStep]

    @property
    def more_leases(self) -> int:
        """Return how many leases are not named."""
        return max(self.row.line.leases - len(self.leases), 0)

    @property
    def is_open(self) -> bool:
        return self.dispute.status == DisputeStatus.OPEN

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This dispute"), f"ops/disputes/{self.dispute.pk}")]


def build_dispute_page(found: Dispute) -> DisputePage:
    """Read what the page of one dispute shows."""
    row = next(row for row in invoice_line_rows(found.invoice) if row.line.pk == found.line_id)
    return DisputePage(
        dispute=found,
        row=row,
        given_back=CreditNoteLine.objects.filter(line=found.line_id).aggregate(back=Sum("minor", default=0))["back"],
        leases=disputed_usage.usage_on_line(row.line, most=MAX_LEASES),
        payment_pending=dispute_outcomes.has_pending_payment(found.invoice),
        steps=list(found.steps.order_by("n")),
    )
