"""The story's paper: rates of tax as they are in 2026, and who its tenants are on their invoices."""

from datetime import date, datetime

from billing.domain.parties import Party
from billing.services.showcase.people import OPERATOR, Cast
from billing.services.tax import details, rates
from tenants.services.walls import as_tenant

# Standard rates in basis points. Whoever charges anybody by them looks them up anew.
STANDARD = {
    "AT": 2000, "BE": 2100, "BG": 2000, "CY": 1900, "CZ": 2100, "DE": 1900, "DK": 2500, "EE": 2400, "ES": 2100,
    "FI": 2550, "FR": 2000, "GR": 2400, "HR": 2500, "HU": 2700, "IE": 2300, "IT": 2200, "LT": 2100, "LU": 1700,
    "LV": 2100, "MT": 1800, "NL": 2100, "PL": 2300, "PT": 2300, "RO": 2100, "SE": 2500, "SI": 2200, "SK": 2300,
}  # fmt: skip
SINCE = date(2026, 1, 1)
KESTREL = Party(
    "Kestrel Bio GmbH",
    "Torstraße 99",
    "2. Hof",
    "10119",
    "Berlin",
    "DE",
    "DE123456788",
    "mira@kestrel.example",
)
TERN = Party(
    "Tern Robotics ApS", "Havnegade 12", "", "1058", "København", "DK", "DK12345674", "ops@tern.example"
)


def publish(*, now: datetime) -> None:
    """Let the rates hold since the year began."""
    for country, rate_bp in STANDARD.items():
        rates.publish(
            jurisdiction=country, category="standard", rate_bp=rate_bp, since=SINCE, actor=OPERATOR, now=now
        )


def tell(cast: Cast, party: Party, *, now: datetime) -> None:
    """Let a tenant's first person say who it is."""
    with as_tenant(cast.tenant.pk):
        details.tell(cast.tenant, told=party, actor=next(iter(cast.actors.values())), now=now)
