"""Draft invoices: what a month has come to so far, for as long as it may still change."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, F, OuterRef, QuerySet

from billing.domain.money import EXACT_PER_UNIT, exponent_of
from billing.domain.tax import TAXED
from billing.models import BillingPeriod, Invoice, InvoiceLine, InvoiceStatus, MonthCharge, RatedCharge
from billing.models.invoices import LineKind
from billing.models.periods import OPEN
from billing.services.month_charges import reckoning
from billing.services.month_charges.reckoning import Unreckonable
from billing.services.statements import statement
from billing.services.tax import standings
from tenants.models import Tenant
from tenants.services.walls import as_tenant

ADDED = frozenset(LineKind.values) - {LineKind.USAGE}  # lines of no offering
# Two questions, for each has an index of its own: what was used in a month, and what a closed month left to it.
_CHARGED = RatedCharge.objects.filter(tenant_id=OuterRef("tenant"), billed_period_id=OuterRef("pk"))
_USED = Exists(_CHARGED.filter(period_id=OuterRef("pk"))) | Exists(
    _CHARGED.exclude(billed_period_id=F("period_id"))
)
_INVOICED = Exists(Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=OuterRef("pk")))
log = structlog.get_logger(__name__)


def refresh(tenant: Tenant, *, now: datetime, closes: BillingPeriod | None = None) -> int:
    """Bring the tenant's drafts up to its charges; return how many lines changed. Repeating it changes none.

    What a month carries beside its seconds is an estimate on them, but of the month that `closes`: there it is written.
    """
    with as_tenant(tenant.pk):
        return _write([tenant], _carried(tenant, now, closes), now)


def refresh_plain(tenants: Sequence[Tenant], *, now: datetime) -> int:
    """Do the same for many tenants whose months carry nothing beside their seconds; behind the wall of all of them."""
    _begin(BillingPeriod.objects.filter(tenant__in=tenants), now)
    list(_kept(tenants).order_by("tenant", "period__span"))
    return _write(tenants, {}, now)


def refresh_all(tenants: Iterable[str], *, now: datetime) -> int:
    """Refresh the drafts of these tenants, each in its own transaction; one that fails keeps nobody else's old.

    Nothing of it is lost: its next news, or the close of its month, brings it up to date.
    """
    changed = 0
    for tenant_id in tenants:
        try:
            with as_tenant(tenant_id):
                changed += refresh(Tenant.objects.get(pk=tenant_id), now=now)
        except (Unreckonable, DatabaseError) as error:
            log.error("a draft is not up to date", tenant=tenant_id, why=str(error).strip())
    return changed


def _write(tenants: Sequence[Tenant], carried: Mapping[Invoice, Sequence[MonthCharge]], now: datetime) -> int:
    taxed, by_key = standings.standings(tenants), {tenant.pk: tenant for tenant in tenants}
    told = [
        {
            "tenant": tenant_id,
            "treatment": each.treatment,
            "jurisdiction": each.jurisdiction,
            "untaxed": each.treatment not in TAXED,
            "scale": 10 ** exponent_of(by_key[tenant_id].currency),
        }
        for tenant_id, each in taxed.items()
    ]
    asked: dict[str, Any] = {
        "standings": json.dumps(told),
        "now": now,
        "per_unit": EXACT_PER_UNIT,
        "carried": json.dumps(_told(carried)),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("draft"), asked)
        return int(cursor.fetchone()[0])


def _carried(
    tenant: Tenant, now: datetime, closes: BillingPeriod | None
) -> Mapping[Invoice, Sequence[MonthCharge]]:
    """Open drafts, and return what the months of all of them carry beside their seconds."""
    _open_drafts(tenant, now)
    drafts = list(_kept([tenant]).select_related("period").order_by("period__span"))
    if not reckoning.any_terms(tenant.pk):
        return {}
    found = {invoice: reckoning.reckoned(invoice) for invoice in drafts}
    if closes and closes.pk not in {invoice.period_id for invoice in drafts}:
        found |= _unused(tenant, closes, now)
    for invoice, charges in found.items():
        _drop_other_additions(invoice, charges)
        if closes and invoice.period_id == closes.pk:
            reckoning.write(charges)
    return found


def _kept(tenants: Sequence[Tenant]) -> QuerySet[Invoice]:
    """Have whoever else brings drafts up to date wait: what an older look found must not go over a newer one."""
    rows = Invoice.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(tenant__in=tenants, status=InvoiceStatus.DRAFT)


def _drop_other_additions(invoice: Invoice, charges: Sequence[MonthCharge]) -> None:
    """Take away lines that the month adds no longer, and all after them: these are written anew, without a gap."""
    wanted = set(reckoning.by_line(charges))
    added = InvoiceLine.objects.filter(invoice=invoice, kind__in=ADDED).order_by("n")
    keys = ((line.n, (line.project_id, line.offering_id, line.price_version_id)) for line in added)
    if gone := [n for n, key in keys if key not in wanted]:
        InvoiceLine.objects.filter(invoice=invoice, n__gte=gone[0]).delete()


def _told(carried: Mapping[Invoice, Sequence[MonthCharge]]) -> list[dict[str, object]]:
    return [
        {
            "invoice": invoice.pk,
            "kind": offering if offering in ADDED else LineKind.USAGE,
            "project": project,
            "offering": offering,
            "price": price,
            "num": str(num),
        }
        for invoice, charges in carried.items()
        for (project, offering, price), num in reckoning.by_line(charges).items()
    ]


def _open_drafts(tenant: Tenant, now: datetime) -> None:
    """Begin an invoice for every open month that has a charge and none yet."""
    _begin(BillingPeriod.objects.filter(tenant=tenant), now)


def _begin(months: QuerySet[BillingPeriod], now: datetime) -> None:
    wanted = months.filter(~_INVOICED, _USED, status=OPEN).select_related("tenant")
    Invoice.objects.bulk_create(
        [_begun(month.tenant, month, now) for month in wanted.order_by("span")],
        ignore_conflicts=True,  # another worker began the same one
    )


def _unused(tenant: Tenant, month: BillingPeriod, now: datetime) -> dict[Invoice, list[MonthCharge]]:
    """Begin the invoice of a month that closes without any use, where something is owed for it nevertheless."""
    invoice = _begun(tenant, month, now)
    charges = reckoning.reckoned(invoice)
    if not charges:
        return {}
    invoice.save(force_insert=True)
    return {invoice: charges}


def _begun(tenant: Tenant, month: BillingPeriod, now: datetime) -> Invoice:
    return Invoice(tenant=tenant, period=month, currency=tenant.currency, refreshed_at=now)
