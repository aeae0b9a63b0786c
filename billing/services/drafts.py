"""Draft invoices: what a month has come to so far, for as long as it may still change."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, OuterRef

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
log = structlog.get_logger(__name__)


def refresh(tenant: Tenant, *, now: datetime, closes: BillingPeriod | None = None) -> int:
    """Bring the tenant's drafts up to its charges; return how many lines changed. Repeating it changes none.

    What a month carries beside its seconds is an estimate on them, but of the month that `closes`: there it is written.
    """
    with as_tenant(tenant.pk):
        carried = _carried(tenant, now, closes)
        taxed = standings.standing(tenant)
        asked = {
            "treatment": taxed.treatment,
            "jurisdiction": taxed.jurisdiction,
            "untaxed": taxed.treatment not in TAXED,
            "tenant": tenant.pk,
            "now": now,
            "scale": 10 ** exponent_of(tenant.currency),
            "per_unit": EXACT_PER_UNIT,
            "carried": json.dumps(_told(carried)),
        }
        with connection.cursor() as cursor:
            cursor.execute(statement("draft"), asked)
            return int(cursor.fetchone()[0])


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


def _carried(
    tenant: Tenant, now: datetime, closes: BillingPeriod | None
) -> Mapping[Invoice, Sequence[MonthCharge]]:
    """Open drafts, and return what the months of all of them carry beside their seconds."""
    _open_drafts(tenant, now)
    # Whoever else brings them up to date waits: what an older look found must not be written over a newer one.
    rows = Invoice.objects.select_for_update(no_key=True, of=("self",)).select_related("period")
    drafts = list(rows.filter(tenant=tenant, status=InvoiceStatus.DRAFT).order_by("period__span"))
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
    invoice = Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=OuterRef("pk"))
    charge = RatedCharge.objects.filter(tenant_id=tenant.pk, billed_period_id=OuterRef("pk"))
    months = BillingPeriod.objects.filter(~Exists(invoice), Exists(charge), tenant=tenant, status=OPEN)
    Invoice.objects.bulk_create(
        [_begun(tenant, month, now) for month in months.order_by("span")],
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
