"""Setup of tenants with discounts, minimums and tiers."""

from typing import Any

from billing.models import Discount, Invoice, InvoiceAdjustment, PriceVersion, RateCard
from billing.services.documents import invoice_bundles
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.verify.verify import Report, check
from broker.models import Offering
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import invoice_lines, invoices_of, utc

NOW = utc("2026-11-21 09:00:00")
CLOSES = utc("2026-12-01 00:10:00")
START = utc("2026-11-02 00:00:00")


def create_discount(tenant: Tenant, **terms: Any) -> Discount:
    """Create a discount that is valid from November unless stated otherwise."""
    with tenant_scope(tenant.pk):
        return Discount.objects.create(
            **{
                "tenant": tenant,
                "name": "Partner",
                "first_month": "2026-11",
                "given_by": "operator@example.org",
                "given_at": utc("2026-11-01 00:00:00"),
                "currency": "EUR" if "minor" in terms else "",
            }
            | terms
        )


def create_draft(tenant: Tenant) -> Invoice:
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    return invoices_of(tenant)[-1]


def close_and_get_invoice(tenant: Tenant, month: str = "2026-11") -> Invoice:
    """Close a month and return its invoice."""
    lease_rating.rate_all_leases(now=CLOSES)
    invoice = close_month.close_period(tenant, month, now=CLOSES)
    assert invoice is not None
    return invoice


def adjustments_of(tenant: Tenant) -> list[tuple[str, str, int]]:
    """Return the kind, line and exact amount of each stored adjustment."""
    with tenant_scope(tenant.pk):
        rows = InvoiceAdjustment.objects.order_by("billed_period_id", "n")
        return [(row.kind, row.offering_id, int(row.exact_num)) for row in rows]


def line_amounts(invoice: Invoice) -> list[tuple[str, int]]:
    return [(line.offering_id, line.minor) for line in invoice_lines(invoice)]


def verify_invoice(invoice: Invoice) -> Report:
    """Recompute an invoice with the independent verifier."""
    with tenant_scope(invoice.tenant_id):
        raw = b"".join(invoice_bundles.build_bundle(invoice))
    report = check(raw)
    assert report.differences == []
    assert report.unchecked == []
    return report


def set_tiered_price(
    offering: Offering, model: str, starts: list[int], prices: list[int], *, nano: int = 10**9, **more: Any
) -> PriceVersion:
    """Create a tiered price that is valid from the first of November."""
    card, _ = RateCard.objects.get_or_create(name="list", tenant_id=None)
    made = PriceVersion.objects.create(
        rate_card=card,
        offering=offering,
        currency="EUR",
        valid=more.pop("valid", (utc("2026-11-01 00:00:00"), None)),
        nano_per_hour=nano,
        model=model,
        tier_from_s=starts,
        tier_nano=prices,
        created_at=utc("2026-11-01 00:00:00"),
        **more,
    )
    made.refresh_from_db()
    return made
