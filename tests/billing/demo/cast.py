"""Five tenants in five time zones, three currencies and as many ways to be taxed; and what is sold to them."""

from dataclasses import dataclass
from datetime import datetime

from billing.domain.parties import Party
from billing.services import prices
from billing.services.showcase import papers
from billing.services.tax import details
from broker.services.inventory import Rack
from tenants.models import QuotaKind
from tenants.services import tenants
from tenants.services.actors import Actor
from tenants.services.walls import as_tenant
from tests.world import OPERATOR, Home, fleet, offering

NANO = 10**9
CARD, SLICE = "card", "3g.40gb"
# What an hour costs at first, in thousandths of a unit of the currency.
LIST = {
    "EUR": {(CARD, "on_demand"): 2890, (CARD, "spot"): 1330, (SLICE, "on_demand"): 1340},
    "USD": {(CARD, "on_demand"): 3190, (CARD, "spot"): 1470, (SLICE, "on_demand"): 1480},
    "JPY": {(CARD, "on_demand"): 468_500, (CARD, "spot"): 215_250, (SLICE, "on_demand"): 217_333},
}


@dataclass(frozen=True)
class Role:
    """Who somebody is in the story."""

    zone: str
    currency: str
    party: Party


CAST = {
    "Kestrel Bio": Role(
        "Europe/Berlin",
        "EUR",
        Party("Kestrel Bio GmbH", "Torstraße 99", "", "10119", "Berlin", "DE", "DE123456788", "ap@kestrel.example"),
    ),
    "Reef Survey": Role(
        "Australia/Lord_Howe",
        "EUR",
        Party("Reef Survey Pty Ltd", "Lagoon Road 4", "", "2898", "Lord Howe Island", "AU", "", "ap@reef.example"),
    ),
    "Northlight Rendering": Role(
        "America/St_Johns",
        "USD",
        Party("Northlight Inc.", "120 Water Street", "", "A1C 1A9", "St. John's", "CA", "", "ap@north.example"),
    ),
    "Sakura Robotics": Role(
        "Asia/Tokyo",
        "JPY",
        Party("Sakura Robotics K.K.", "2-4-1 Marunouchi", "", "100-0005", "Tokyo", "JP", "", "ap@sakura.example"),
    ),
    "Monsoon AI": Role(
        "Asia/Kolkata",
        "EUR",
        Party("Monsoon AI Pvt Ltd", "14 MG Road", "", "560001", "Bengaluru", "IN", "", "ap@monsoon.example"),
    ),
}  # fmt: skip


def open_shop(*, now: datetime) -> dict[str, Home]:
    """Set up racks and prices, make the tenants, and write down who they are."""
    fleet(Rack("north-1", "eu-north", "H100-80GB", nodes=3), now=now)
    for currency, costs in LIST.items():
        for (profile, price_class), thousandths in costs.items():
            publish(profile, price_class, currency, thousandths, since=now, now=now)
    papers.publish(now=now)
    return {name: _tenant(name, role, now) for name, role in CAST.items()}


def publish(
    profile: str, price_class: str, currency: str, thousandths: int, *, since: datetime, now: datetime
) -> None:
    prices.publish(
        offering=offering(profile, price_class=price_class),
        currency=currency,
        nano_per_hour=thousandths * NANO // 1000,
        since=since,
        actor=OPERATOR,
        now=now,
    )


def _tenant(name: str, role: Role, now: datetime) -> Home:
    actor = Actor("user", f"usr_{name[:3].lower()}", role.party.email)
    with as_tenant(""):
        made, root = tenants.create(
            name=name, owner=None, actor=actor, now=now, time_zone=role.zone, currency=role.currency
        )
    home = Home(made, root, actor)
    home.quota(QuotaKind.UNITS, 200_000)
    with as_tenant(made.pk):
        details.tell(made, told=role.party, actor=actor, now=now)
    return home
