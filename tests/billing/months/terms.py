"""Tenants with terms of their own, and what their months come to."""

from typing import Any

from billing.models import Discount, Invoice, MonthCharge, PriceVersion, RateCard
from billing.services import bundles, closing, drafts, rating
from billing.verify.verify import Report, check
from broker.models import Offering
from tenants.models import Tenant
from tenants.services.walls import as_tenant
from tests.billing.histories import at, invoices, lines

NOW = at("2026-11-21 09:00:00")
CLOSES = at("2026-12-01 00:10:00")
START = at("2026-11-02 00:00:00")


def given(tenant: Tenant, **terms: Any) -> Discount:
    """Write a discount as it stands, from November on unless it says otherwise."""
    with as_tenant(tenant.pk):
        return Discount.objects.create(
            **{
                "tenant": tenant,
                "name": "Partner",
                "first_month": "2026-11",
                "given_by": "operator@example.org",
                "given_at": at("2026-11-01 00:00:00"),
                "currency": "EUR" if "minor" in terms else "",
            }
            | terms
        )


def drafted(tenant: Tenant) -> Invoice:
    rating.rate(now=NOW)
    drafts.refresh(tenant, now=NOW)
    return invoices(tenant)[-1]


def closed(tenant: Tenant, month: str = "2026-11") -> Invoice:
    """Close a month and return its invoice."""
    rating.rate(now=CLOSES)
    invoice = closing.close_period(tenant, month, now=CLOSES)
    assert invoice is not None
    return invoice


def carried(tenant: Tenant) -> list[tuple[str, str, int]]:
    """Return what was written of months: kind, line and exact amount."""
    with as_tenant(tenant.pk):
        rows = MonthCharge.objects.order_by("billed_period_id", "n")
        return [(row.kind, row.offering_id, int(row.exact_num)) for row in rows]


def amounts(invoice: Invoice) -> list[tuple[str, int]]:
    return [(line.offering_id, line.minor) for line in lines(invoice)]


def checked(invoice: Invoice) -> Report:
    """Let the program that shares no line with the product recompute an invoice."""
    with as_tenant(invoice.tenant_id):
        raw = b"".join(bundles.bundle(invoice))
    report = check(raw)
    assert report.differences == []
    assert report.unchecked == []
    return report


def tiered(
    offering: Offering, model: str, starts: list[int], prices: list[int], *, nano: int = 10**9, **more: Any
) -> PriceVersion:
    """Let an offering have a price in tiers from the first of November on."""
    card, _ = RateCard.objects.get_or_create(name="list", tenant_id=None)
    made = PriceVersion.objects.create(
        rate_card=card,
        offering=offering,
        currency="EUR",
        valid=more.pop("valid", (at("2026-11-01 00:00:00"), None)),
        nano_per_hour=nano,
        model=model,
        tier_from_s=starts,
        tier_nano=prices,
        created_at=at("2026-11-01 00:00:00"),
        **more,
    )
    made.refresh_from_db()
    return made
