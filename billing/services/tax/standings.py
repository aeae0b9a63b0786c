"""Who supplies and who pays, and how the one is taxed by the other."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.domain import tax
from billing.domain.countries import NAMES
from billing.domain.parties import NotAVatNumber, Party, vat_number
from billing.domain.tax import Standing
from billing.models import BillingDetails, TaxRate
from tenants.models import Tenant


def supplier() -> Party | None:
    """Return who stands on invoices as their supplier, or None where the settings name nobody.

    Raises ImproperlyConfigured for a country that there is not and for a VAT number that is none.
    """
    told: dict[str, str] = settings.SUPPLIER
    if not told["name"]:
        return None
    if told["country"] not in NAMES:
        raise ImproperlyConfigured(
            f"GPUBROKER_SUPPLIER_COUNTRY is {told['country']!r}, which is no country. Write two letters such as DE."
        )
    try:
        number = vat_number(told["vat_id"], told["country"]) if told["vat_id"] else ""
    except NotAVatNumber as odd:
        raise ImproperlyConfigured(f"GPUBROKER_SUPPLIER_VAT_ID: {odd}") from odd
    return Party(**{**told, "vat_id": number})


def customer(tenant: Tenant) -> Party:
    """Return who a tenant is on paper; while it has said nothing, its name."""
    return customers([tenant])[tenant.pk]


def customers(tenants: Iterable[Tenant]) -> dict[str, Party]:
    """Return who each of these is on paper; one query. Behind the wall of all of them."""
    wanted = list(tenants)
    told = {each.tenant_id: each.party for each in BillingDetails.objects.filter(tenant__in=wanted)}
    return {tenant.pk: told.get(tenant.pk) or Party(name=tenant.name) for tenant in wanted}


def standing(tenant: Tenant) -> Standing:
    """Return how the tenant's drafts are taxed now."""
    return standings([tenant])[tenant.pk]


def standings(tenants: Iterable[Tenant]) -> dict[str, Standing]:
    """Return how the drafts of each of these are taxed now; one query. Behind the wall of all of them."""
    by = supplier()
    country = by.country if by else ""
    return {
        tenant_id: tax.standing(country, told.country, vat_id=told.vat_id)
        for tenant_id, told in customers(tenants).items()
    }


def rate_on(taxed: Standing, moment: datetime) -> int | None:
    """Return the standard rate of that day in basis points, or None where there is none or nobody knows it."""
    rates = TaxRate.objects.filter(
        jurisdiction=taxed.jurisdiction, category=tax.STANDARD, valid__contains=moment.date()
    )
    return rates.values_list("rate_bp", flat=True).first()
