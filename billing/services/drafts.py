"""Draft invoices: what a month has come to so far, for as long as it may still change."""

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.db import DatabaseError, connection
from django.db.models import Exists, OuterRef

from billing.domain.money import EXACT_PER_UNIT, exponent_of
from billing.domain.tax import TAXED
from billing.models import BillingPeriod, Invoice, InvoiceStatus, RatedCharge
from billing.models.periods import OPEN
from billing.services.statements import statement
from billing.services.tax import standings
from tenants.models import Tenant
from tenants.services.walls import as_tenant

log = structlog.get_logger(__name__)


def refresh(tenant: Tenant, *, now: datetime) -> int:
    """Bring the tenant's drafts up to its charges; return how many lines changed. Repeating it changes none."""
    with as_tenant(tenant.pk):
        _open_drafts(tenant, now)
        taxed = standings.standing(tenant)
        asked = {
            "treatment": taxed.treatment,
            "jurisdiction": taxed.jurisdiction,
            "untaxed": taxed.treatment not in TAXED,
            "tenant": tenant.pk,
            "now": now,
            "scale": 10 ** exponent_of(tenant.currency),
            "per_unit": EXACT_PER_UNIT,
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
        except DatabaseError as error:
            log.error("a draft is not up to date", tenant=tenant_id, why=str(error).strip())
    return changed


def _open_drafts(tenant: Tenant, now: datetime) -> None:
    """Begin an invoice for every open month that has a charge and none yet."""
    invoice = Invoice.objects.exclude(status=InvoiceStatus.VOID).filter(period=OuterRef("pk"))
    charge = RatedCharge.objects.filter(tenant_id=tenant.pk, billed_period_id=OuterRef("pk"))
    months = BillingPeriod.objects.filter(~Exists(invoice), Exists(charge), tenant=tenant, status=OPEN)
    Invoice.objects.bulk_create(
        [
            Invoice(tenant=tenant, period=month, currency=tenant.currency, refreshed_at=now)
            for month in months.order_by("span")
        ],
        ignore_conflicts=True,  # another worker began the same one
    )
