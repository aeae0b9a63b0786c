"""Filtered corrections, and the same as CSV."""

from collections.abc import Iterable

from django.db.models import QuerySet
from django.http.response import HttpResponseBase

from billing.domain.money import decimal_string
from billing.models import Correction, TenantCorrection
from web.portal.operators.list_filters import ListFilter, csv_list, csv_time

CORRECTION_HEADS = (
    "correction", "kind", "status", "lease", "price_version", "since", "until", "reason", "author", "proposed_at",
    "approver", "second_approver", "currency", "amount",
)  # fmt: skip


def found_corrections(limits: ListFilter) -> QuerySet[Correction]:
    """Return the corrections that were proposed on these days, or concern this tenant."""
    if not limits.tenant:
        return limits.apply(Correction.objects.all(), at="proposed_at", tenant="")
    theirs = limits.apply(TenantCorrection.objects.all(), at="correction__proposed_at")
    return Correction.objects.filter(pk__in=theirs.values("correction_id"))


def correction_csv(rows: Iterable[Correction]) -> HttpResponseBase:
    """Return corrections as a CSV download."""
    return csv_list("corrections", CORRECTION_HEADS, map(_correction_row, rows))


def _correction_row(each: Correction) -> tuple[object, ...]:
    return (
        *(each.pk, each.kind, each.status, each.lease_id, each.price_version_id or "", csv_time(each.since)),
        *(csv_time(each.until), each.reason, each.author, csv_time(each.proposed_at), each.approver),
        *(each.second_approver, each.currency, decimal_string(each.minor, each.currency)),
    )
