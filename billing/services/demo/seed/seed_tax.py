"""Demo tax rates as of 2026, and billing details of the demo tenants."""

from datetime import date, datetime

from billing.domain.parties import InvoiceParty
from billing.services.demo.seed.seed_tenants import SEED_ACTOR, DemoTenant
from billing.services.invoicing import billing_details
from billing.services.tax import tax_rates
from tenants.services.rls import tenant_scope

# Standard rates in basis points. Verify them before charging customers.
STANDARD = {
    "AT": 2000, "BE": 2100, "BG": 2000, "CY": 1900, "CZ": 2100, "DE": 1900, "DK": 2500, "EE": 2400, "ES": 2100,
    "FI": 2550, "FR": 2000, "GR": 2400, "HR": 2500, "HU": 2700, "IE": 2300, "IT": 2200, "LT": 2100, "LU": 1700,
    "LV": 2100, "MT": 1800, "NL": 2100, "PL": 2300, "PT": 2300, "RO": 2100, "SE": 2500, "SI": 2200, "SK": 2300,
}  # fmt: skip
RATES_SINCE = date(2026, 1, 1)
KESTREL_PARTY = InvoiceParty(
    "Kestrel Bio GmbH", "Torstraße 99", "2. Hof", "10119", "Berlin", "DE", "DE123456788", "mira@kestrel.example"
)
TERN_PARTY = InvoiceParty(
    "Tern Robotics ApS", "Havnegade 12", "", "1058", "København", "DK", "DK12345674", "ops@tern.example"
)


def publish_tax_rates(*, now: datetime) -> None:
    """Publish the rates, valid since the beginning of the year."""
    for country, rate_bp in STANDARD.items():
        tax_rates.publish_tax_rate(
            jurisdiction=country, category="standard", rate_bp=rate_bp, since=RATES_SINCE, actor=SEED_ACTOR, now=now
        )


def set_tenant_details(cast: DemoTenant, party: InvoiceParty, *, now: datetime) -> None:
    """Set a tenant's billing details as its first user."""
    with tenant_scope(cast.tenant.pk):
        billing_details.set_billing_details(cast.tenant, party=party, actor=next(iter(cast.actors.values())), now=now)
