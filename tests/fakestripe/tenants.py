"""Tenants with a payment card at the fake Stripe."""

from datetime import UTC, datetime
from typing import Any

from billing.models import StripeCustomer
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.fakestripe import things
from tests.fakestripe.server import FakeStripe

ADDED = datetime(2026, 10, 1, 9, 0, tzinfo=UTC)


def create_card_holder(fake: FakeStripe, tenant_id: str, *, how: str = "ok", last4: str = "4242") -> dict[str, Any]:
    """Create a tenant with a card at the fake; return the card."""
    kept = fake.things
    with tenant_scope(tenant_id):
        if not Tenant.objects.filter(pk=tenant_id).exists():
            Tenant.objects.create(id=tenant_id, name=tenant_id, created_at=ADDED)
        customer = things.new_customer(kept, {"name": tenant_id, "metadata": {"tenant": tenant_id}})
        card = kept.make(
            "payment_method",
            "pm",
            type="card",
            customer=customer["id"],
            card={"brand": "visa", "last4": last4, "exp_month": 7, "exp_year": 2029},
            how=how,
            next=[],
        )
        StripeCustomer.objects.update_or_create(
            tenant_id=tenant_id,
            defaults={
                "customer_id": customer["id"],
                "card_id": card["id"],
                "brand": "visa",
                "last4": last4,
                "ends": "2029-07",
                "added_at": ADDED,
            },
        )
    return card
