"""Who buys and who sells in tests of tax, and a month of theirs that is over."""

from datetime import date

from billing.domain.parties import Party
from billing.models import Invoice, TaxRate
from billing.services import closing, rating
from billing.services.tax import details, rates
from tenants.models import Project, Tenant
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, at, customer, ran, sold
from tests.billing.payments.bills import NOW

LUMEN = Party(
    "Lumen Compute GmbH", "Lichtweg 7", "", "10115", "Berlin", "DE", "DE136695976", "books@lumen.example"
)
ATELIER = Party("Atelier Nord SARL", "3 rue des Ponts", "", "75011", "Paris", "FR", "FR40303265045")
PERSON = Party("Marie Blanc", "3 rue des Ponts", "", "75011", "Paris", "FR")
SWISS = Party("Alpen AG", "Bahnhofstrasse 1", "", "8001", "Zürich", "CH")
LONG_SINCE = date(2020, 1, 1)


def taxed(
    country: str = "DE", per_cent: int = 19, *, category: str = "standard", since: date = LONG_SINCE
) -> TaxRate:
    return rates.publish(
        jurisdiction=country,
        category=category,
        rate_bp=per_cent * 100,
        since=since,
        actor=OPERATOR,
        now=NOW,
    )


def told(tenant: Tenant, party: Party) -> None:
    with as_tenant(tenant.pk):
        details.tell(tenant, told=party, actor=OPERATOR, now=NOW)


def october(*cents: int, party: Party | None = None) -> Invoice:
    """Return a tenant's October, final, with a line of each of these cents."""
    tenant, project = customer()
    if party:
        told(tenant, party)
    used(project, *cents)
    return closed(tenant)


def used(project: Project, *cents: int) -> None:
    for n, amount in enumerate(cents):
        ran(project, sold(amount * EURO // 100), at(f"2026-10-{n % 28 + 1:02} 00:00:00"), HOUR)


def closed(tenant: Tenant, label: str = "2026-10") -> Invoice:
    rating.rate_tenant(tenant, now=NOW)
    found = closing.close_period(tenant, label, now=NOW)
    assert found is not None
    found.tenant = tenant  # else it is asked for outside of its wall
    return found
