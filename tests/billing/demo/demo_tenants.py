"""Five demo tenants in five time zones and three currencies."""

from dataclasses import dataclass
from datetime import datetime

from billing.domain.parties import InvoiceParty
from billing.services.catalogue import price_list
from billing.services.demo.seed import seed_tax
from billing.services.invoicing import billing_details
from broker.services.inventory.hardware import SimulatedRack
from tenants.models import QuotaKind
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.simulation import OPERATOR, TenantContext, create_fleet, offering

NANO = 10**9
WHOLE, SLICE = "whole-gpu", "3g.40gb"
# What an hour costs at first, in thousandths of a unit of the currency.
LIST = {
    "EUR": {(WHOLE, "on_demand"): 2890, (WHOLE, "spot"): 1330, (SLICE, "on_demand"): 1340},
    "USD": {(WHOLE, "on_demand"): 3190, (WHOLE, "spot"): 1470, (SLICE, "on_demand"): 1480},
    "JPY": {(WHOLE, "on_demand"): 468_500, (WHOLE, "spot"): 215_250, (SLICE, "on_demand"): 217_333},
}


@dataclass(frozen=True)
class Role:
    """Who somebody is in the story."""

    zone: str
    currency: str
    party: InvoiceParty


CAST = {
    "Kestrel Bio": Role(
        "Europe/Berlin",
        "EUR",
        InvoiceParty(
            "Kestrel Bio GmbH", "Torstraße 99", "", "10119", "Berlin", "DE", "DE123456788", "ap@kestrel.example"
        ),
    ),
    "Reef Survey": Role(
        "Australia/Lord_Howe",
        "EUR",
        InvoiceParty(
            "Reef Survey Pty Ltd", "Lagoon Road 4", "", "2898", "Lord Howe Island", "AU", "", "ap@reef.example"
        ),
    ),
    "Northlight Rendering": Role(
        "America/St_Johns",
        "USD",
        InvoiceParty("Northlight Inc.", "120 Water Street", "", "A1C 1A9", "St. John's", "CA", "", "ap@north.example"),
    ),
    "Sakura Robotics": Role(
        "Asia/Tokyo",
        "JPY",
        InvoiceParty(
            "Sakura Robotics K.K.", "2-4-1 Marunouchi", "", "100-0005", "Tokyo", "JP", "", "ap@sakura.example"
        ),
    ),
    "Monsoon AI": Role(
        "Asia/Kolkata",
        "EUR",
        InvoiceParty("Monsoon AI Pvt Ltd", "14 MG Road", "", "560001", "Bengaluru", "IN", "", "ap@monsoon.example"),
    ),
}  # fmt: skip


def open_shop(*, now: datetime) -> dict[str, TenantContext]:
    """Create racks, prices, tenants and their roles."""
    create_fleet(SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=3), now=now)
    for currency, costs in LIST.items():
        for (profile, price_class), thousandths in costs.items():
            publish(profile, price_class, currency, thousandths, since=now, now=now)
    seed_tax.publish_tax_rates(now=now)
    return {name: _tenant(name, role, now) for name, role in CAST.items()}


def publish(profile: str, price_class: str, currency: str, thousandths: int, *, since: datetime, now: datetime) -> None:
    price_list.publish_price(
        offering=offering(profile, price_class=price_class),
        currency=currency,
        nano_per_hour=thousandths * NANO // 1000,
        since=since,
        actor=OPERATOR,
        now=now,
    )


def _tenant(name: str, role: Role, now: datetime) -> TenantContext:
    actor = Actor("user", f"usr_{name[:3].lower()}", role.party.email)
    with tenant_scope(""):
        made, root = tenants.create(
            name=name, owner=None, actor=actor, now=now, time_zone=role.zone, currency=role.currency
        )
    home = TenantContext(made, root, actor)
    home.set_quota(QuotaKind.UNITS, 200_000)
    with tenant_scope(made.pk):
        billing_details.set_billing_details(made, party=role.party, actor=actor, now=now)
    return home
