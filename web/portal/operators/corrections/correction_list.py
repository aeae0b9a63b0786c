"""List of corrections: its filters, sums and CSV columns."""

from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy

from billing.models import Correction, TenantCorrection
from billing.models.corrections import CorrectionStatus
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time


def _correction_cells(each: Correction) -> tuple[object, ...]:
    return (
        *(each.pk, each.kind, each.status, each.lease_id, each.price_version_id or "", csv_time(each.since)),
        *(csv_time(each.until), each.reason, each.author, csv_time(each.proposed_at), each.approver),
        *(each.second_approver, each.currency, csv_money(each.minor, each.currency)),
    )


def _concerning(tenants: Any) -> Q:
    return Q(pk__in=TenantCorrection.objects.filter(tenant__in=tenants).values("correction_id"))


CORRECTION_LIST = OperatorList(
    name="corrections",
    heads=(
        "correction kind status lease price_version since until reason author proposed_at approver "
        "second_approver currency amount"
    ),
    cells=_correction_cells,
    tenant_rows=_concerning,
    at="proposed_at",
    states=(
        ListState("", gettext_lazy("All")),
        *(ListState(each.value, each.label, Q(status=each)) for each in CorrectionStatus),
    ),
    search=("reason", "lease_id", "pk"),
    sums=(ListSum(gettext_lazy("Absolute change before VAT"), "minor"),),
)
