"""Credit notes of all tenants, for operators."""

from typing import Any

from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.models import CreditNote
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page


def _credit_note_cells(each: CreditNote) -> tuple[object, ...]:
    amounts = (each.total, each.tax, each.reduced_due, each.to_balance, each.to_grants)
    return (
        *(each.pk, str(each), each.tenant_id, each.tenant.name, each.invoice_id, str(each.invoice)),
        *(csv_time(each.issued_at), each.issued_by, each.reason, each.correction_id, each.currency),
        *(csv_money(minor, each.currency) for minor in amounts),
    )


CREDIT_NOTE_LIST = OperatorList(
    name="credit-notes",
    heads=(
        "credit_note number tenant tenant_name invoice invoice_number issued_at issued_by reason correction currency "
        "total tax deducted_from_due added_to_balance returned_to_credit"
    ),
    cells=_credit_note_cells,
    tenant="tenant_id",
    at="issued_at",
    search=("series", "reason", "tenant__name", "invoice__pk", "pk"),
    sums=(
        ListSum(gettext_lazy("Credited"), "total"),
        ListSum(gettext_lazy("VAT"), "tax"),
        ListSum(gettext_lazy("Deducted from amounts due"), "reduced_due"),
    ),
)


@operator_page("credit-notes")
def list_credit_notes(request: OperatorRequest) -> Any:
    """List credit notes of all tenants, latest first."""
    lists = read_lists(request, CREDIT_NOTE_LIST)
    rows = CreditNote.objects.select_related("tenant", "invoice__period").order_by("-issued_at", "-pk")
    if wants_csv(request):
        return lists.csv((CREDIT_NOTE_LIST, lambda: rows))
    context = {
        "listing": lists.read(CREDIT_NOTE_LIST, rows),
        "calls": [
            operator_api_call(
                _("Credit notes of all tenants"),
                "ops/credit-notes",
                tenant=lists.filter.tenant_id,
                sort="-id",
                limit=API_PAGE_SIZE,
            )
        ],
    }
    return render(request, "operators/credit_notes/credit_notes.html", context)
