"""Buyers, sellers and a taxed month for tests."""

from datetime import date

from billing.domain.parties import InvoiceParty
from billing.models import Invoice, TaxRate
from billing.services.invoicing import billing_details
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from billing.services.tax import tax_rates
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW

LUMEN = InvoiceParty(
    "Lumen Compute GmbH", "Lichtweg 7", "", "10115", "Berlin", "DE", "DE136695976", "books@lumen.example"
)
ATELIER = InvoiceParty("Atelier Nord SARL", "3 rue des Ponts", "", "75011", "Paris", "FR", "FR40303265045")
PERSON = InvoiceParty("Marie Blanc", "3 rue des Ponts", "", "75011", "Paris", "FR")
SWISS = InvoiceParty("Alpen AG", "Bahnhofstrasse 1", "", "8001", "Zürich", "CH")
LONG_SINCE = date(2020, 1, 1)


def set_tax_rate(
    country: str = "DE", per_cent: int = 19, *, category: str = "standard", since: date = LONG_SINCE
) -> TaxRate:
    return tax_rates.publish_tax_rate(
        jurisdiction=country,
        category=category,
        rate_bp=per_cent * 100,
        since=since,
        actor=OPERATOR,
        now=NOW,
    )


def set_billing_details(tenant: Tenant, party: InvoiceParty) -> None:
    with tenant_scope(tenant.pk):
        billing_details.set_billing_details(tenant, party=party, actor=OPERATOR, now=NOW)


def create_october_invoice(*cents: int, party: InvoiceParty | None = None) -> Invoice:
    """Return a tenant's final October invoice with a line of each of these cents."""
    tenant, project = create_customer()
    if party:
        set_billing_details(tenant, party)
    charge_amounts(project, *cents)
    return close_taxed_month(tenant)


def charge_amounts(project: Project, *cents: int) -> None:
    for n, amount in enumerate(cents):
        add_ended_lease(
            project, create_priced_offering(amount * EURO // 100), utc(f"2026-10-{n % 28 + 1:02} 00:00:00"), HOUR
        )


def close_taxed_month(tenant: Tenant, label: str = "2026-10") -> Invoice:
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, label, now=NOW)
    assert found is not None
    found.tenant = tenant  # else it is asked for outside of its wall
    return found
