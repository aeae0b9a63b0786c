"""Draft invoices: what an open month has come to so far."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError
from django.db.models import Exists, F, OuterRef, QuerySet

from billing.domain.money import EXACT_PER_UNIT, exponent_of
from billing.domain.tax import TAXED_TREATMENTS
from billing.models import BillingPeriod, Invoice, InvoiceAdjustment, InvoiceLine, InvoiceStatus, RatedCharge
from billing.models.invoices import LineKind
from billing.models.periods import OPEN
from billing.services.adjustments import month_adjustments
from billing.services.adjustments.month_adjustments import AdjustmentFailed
from billing.services.tax import tax_determination
from ports.postgres.sql_statements import query_rows
from tenants.models import Tenant
from tenants.services.rls import tenant_scope

ADDED_KINDS = frozenset(LineKind.values) - {LineKind.USAGE}  # kinds of lines without an offering
# Two subqueries, because each has its own index: usage of the month, and late usage of a closed month.
_CHARGES = RatedCharge.objects.filter(tenant_id=OuterRef("tenant"), billed_period_id=OuterRef("pk"))
_USED = Exists(_CHARGES.filter(period_id=OuterRef("pk"))) | Exists(_CHARGES.exclude(billed_period_id=F("period_id")))
_INVOICED = Exists(Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=OuterRef("pk")))
log = structlog.get_logger(__name__)


def refresh_drafts(tenant: Tenant, *, now: datetime, closes: BillingPeriod | None = None) -> int:
    """Refresh the tenant's drafts from its charges; return how many lines changed.

    Repeating it changes none. Adjustments are estimated, except for the month that `closes`: there they
    are written.
    """
    with tenant_scope(tenant.pk):
        return _write_drafts([tenant], _draft_adjustments(tenant, now, closes), now)


def refresh_simple_drafts(tenants: Sequence[Tenant], *, now: datetime) -> int:
    """Refresh drafts of many tenants without adjustments, in the RLS scope of all."""
    _create_drafts(BillingPeriod.objects.filter(tenant__in=tenants), now)
    list(_locked_drafts(tenants).order_by("tenant", "period__span"))
    return _write_drafts(tenants, {}, now)


def refresh_all_drafts(tenants: Iterable[str], *, now: datetime) -> int:
    """Refresh these tenants' drafts, one transaction each; a failure does not block the others.

    Nothing is lost: the tenant's next charge, or the close of its month, refreshes the draft.
    """
    changed = 0
    for tenant_id in tenants:
        try:
            with tenant_scope(tenant_id):
                changed += refresh_drafts(Tenant.objects.get(pk=tenant_id), now=now)
        except (AdjustmentFailed, DatabaseError) as error:
            log.error("draft invoice not refreshed", tenant=tenant_id, why=str(error).strip())
    return changed


def _write_drafts(
    tenants: Sequence[Tenant], carried: Mapping[Invoice, Sequence[InvoiceAdjustment]], now: datetime
) -> int:
    taxed, by_key = tax_determination.get_tax_statuses(tenants), {tenant.pk: tenant for tenant in tenants}
    tenant_taxes = [
        {
            "tenant": tenant_id,
            "treatment": each.treatment,
            "jurisdiction": each.jurisdiction,
            "untaxed": each.treatment not in TAXED_TREATMENTS,
            "scale": 10 ** exponent_of(by_key[tenant_id].currency),
        }
        for tenant_id, each in taxed.items()
    ]
    carried_json = json.dumps(_adjustments_json(carried))
    values = {"tenants": json.dumps(tenant_taxes), "now": now, "per_unit": EXACT_PER_UNIT, "carried": carried_json}
    return int(query_rows("billing/invoicing/refresh_drafts", **values)[0][0])


def _draft_adjustments(
    tenant: Tenant, now: datetime, closes: BillingPeriod | None
) -> Mapping[Invoice, Sequence[InvoiceAdjustment]]:
    """Open drafts, and return the adjustments of each tenant's open months."""
    _open_drafts(tenant, now)
    drafts = list(_locked_drafts([tenant]).select_related("period").order_by("period__span"))
    if not month_adjustments.has_terms(tenant.pk):
        return {}
    found = {invoice: month_adjustments.compute_adjustments(invoice) for invoice in drafts}
    if closes and closes.pk not in {invoice.period_id for invoice in drafts}:
        found |= _draft_without_usage(tenant, closes, now)
    for invoice, charges in found.items():
        _delete_stale_added_lines(invoice, charges)
        if closes and invoice.period_id == closes.pk:
            month_adjustments.write_adjustments(charges)
    return found


def _locked_drafts(tenants: Sequence[Tenant]) -> QuerySet[Invoice]:
    """Lock the tenants' drafts, so that an older refresh never overwrites a newer one."""
    rows = Invoice.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(tenant__in=tenants, status=InvoiceStatus.DRAFT)


def _delete_stale_added_lines(invoice: Invoice, charges: Sequence[InvoiceAdjustment]) -> None:
    """Delete added lines that no longer apply, and all lines after them.

    Those after them are written again, so that line numbers have no gap.
    """
    wanted = set(month_adjustments.adjustment_by_line(charges))
    added = InvoiceLine.objects.filter(invoice=invoice, kind__in=ADDED_KINDS).order_by("n")
    keys = ((line.n, (line.project_id, line.offering_id, line.price_version_id)) for line in added)
    if gone := [n for n, key in keys if key not in wanted]:
        InvoiceLine.objects.filter(invoice=invoice, n__gte=gone[0]).delete()


def _adjustments_json(carried: Mapping[Invoice, Sequence[InvoiceAdjustment]]) -> list[dict[str, object]]:
    return [
        {
            "invoice": invoice.pk,
            "kind": offering if offering in ADDED_KINDS else LineKind.USAGE,
            "project": project,
            "offering": offering,
            "price": price,
            "num": str(num),
        }
        for invoice, charges in carried.items()
        for (project, offering, price), num in month_adjustments.adjustment_by_line(charges).items()
    ]


def _open_drafts(tenant: Tenant, now: datetime) -> None:
    """Open an invoice for every open month that has a charge and no invoice."""
    _create_drafts(BillingPeriod.objects.filter(tenant=tenant), now)


def _create_drafts(months: QuerySet[BillingPeriod], now: datetime) -> None:
    wanted = months.filter(~_INVOICED, _USED, status=OPEN).select_related("tenant")
    Invoice.objects.bulk_create(
        [_new_draft(month.tenant, month, now) for month in wanted.order_by("span")],
        ignore_conflicts=True,  # another worker opened the same one
    )


def _draft_without_usage(tenant: Tenant, month: BillingPeriod, now: datetime) -> dict[Invoice, list[InvoiceAdjustment]]:
    """Open an invoice for a closing month without usage that still owes something."""
    invoice = _new_draft(tenant, month, now)
    charges = month_adjustments.compute_adjustments(invoice)
    if not charges:
        return {}
    invoice.save(force_insert=True)
    return {invoice: charges}


def _new_draft(tenant: Tenant, month: BillingPeriod, now: datetime) -> Invoice:
    return Invoice(
        tenant=tenant,
        period=month,
        currency=tenant.currency,
        refreshed_at=now,
        revision=month.revision,
        rebills=_cancelled_invoice(month) if month.revision else "",
    )


def _cancelled_invoice(month: BillingPeriod) -> str:
    """Return the invoice that a credit note cancelled when the month was opened again."""
    rows = Invoice.objects.filter(period=month, status=InvoiceStatus.VOID, revision=month.revision - 1)
    return rows.values_list("pk", flat=True).first() or ""
