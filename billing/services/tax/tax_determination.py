"""Supplier and customers, and how each customer is taxed."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.domain import tax
from billing.domain.countries import COUNTRY_CURRENCIES, COUNTRY_NAMES
from billing.domain.parties import (
    BankAccount,
    InvalidBankAccount,
    InvalidVatNumber,
    InvoiceParty,
    normalize_vat_number,
    parse_bank_account,
)
from billing.domain.tax import TaxStatus
from billing.models import AccountTerms, BillingDetails, PaymentTerms, TaxRate
from tenants.models import Tenant


def get_supplier() -> InvoiceParty | None:
    """Return the supplier on invoices, or None if none is configured.

    Raises ImproperlyConfigured for an unknown country or an invalid VAT number.
    """
    supplier: dict[str, str] = settings.SUPPLIER
    if not supplier["name"]:
        return None
    if supplier["country"] not in COUNTRY_NAMES:
        raise ImproperlyConfigured(
            f"GPUBROKER_SUPPLIER_COUNTRY is {supplier['country']!r}, which is not a country code."
            " Use a code such as DE."
        )
    try:
        number = normalize_vat_number(supplier["vat_id"], supplier["country"]) if supplier["vat_id"] else ""
    except InvalidVatNumber as error:
        raise ImproperlyConfigured(f"GPUBROKER_SUPPLIER_VAT_ID: {error}") from error
    return InvoiceParty(**{**supplier, "vat_id": number})


def supplier_currency() -> str:
    """Return the currency in which the supplier owes its taxes: that of its country."""
    country: str = settings.SUPPLIER["country"] if settings.SUPPLIER["name"] else ""
    default: str = settings.CURRENCY
    return COUNTRY_CURRENCIES.get(country, default)


def get_bank_account() -> BankAccount | None:
    """Return the account to which invoices are paid by transfer.

    None if none is configured.

    Raises ImproperlyConfigured for an invalid IBAN or BIC.
    """
    bank: dict[str, str] = settings.SUPPLIER_BANK
    if not bank["iban"]:
        return None
    try:
        return parse_bank_account(**bank)
    except InvalidBankAccount as error:
        raise ImproperlyConfigured(f"GPUBROKER_SUPPLIER_IBAN or GPUBROKER_SUPPLIER_BIC: {error}") from error


def get_customer(tenant: Tenant) -> InvoiceParty:
    """Return a tenant's billing details; only its name until they are set."""
    return get_customers([tenant])[tenant.pk]


def get_customers(tenants: Iterable[Tenant]) -> dict[str, InvoiceParty]:
    """Return the billing details of these tenants; one query.

    Runs in a scope that sees all of them.
    """
    wanted = list(tenants)
    parties = {each.tenant_id: each.party for each in BillingDetails.objects.filter(tenant__in=wanted)}
    return {tenant.pk: parties.get(tenant.pk) or InvoiceParty(name=tenant.name) for tenant in wanted}


def get_tax_status(tenant: Tenant) -> TaxStatus:
    """Return how a tenant's drafts are taxed now."""
    return get_tax_statuses([tenant])[tenant.pk]


def get_tax_statuses(tenants: Iterable[Tenant]) -> dict[str, TaxStatus]:
    """Return how the drafts of these tenants are taxed now; two queries.

    Runs in a scope that sees all of them.
    """
    by, customers = get_supplier(), get_customers(tenants)
    country, untaxed = by.country if by else "", find_showback_tenants(customers)
    return {
        tenant_id: tax.tax_status("" if tenant_id in untaxed else country, party.country, vat_id=party.vat_id)
        for tenant_id, party in customers.items()
    }


def get_po_numbers(tenants: Iterable[Tenant]) -> dict[str, str]:
    """Return the tenants' own order numbers.

    One query, in a scope that sees all of them.
    """
    rows = BillingDetails.objects.filter(tenant__in=list(tenants)).exclude(po_number="")
    return dict(rows.values_list("tenant_id", "po_number"))


def standard_rate_on(taxed: TaxStatus, moment: datetime) -> int | None:
    """Return the standard rate on a day in basis points, or None if unknown."""
    rates = TaxRate.objects.filter(
        jurisdiction=taxed.jurisdiction, category=tax.STANDARD, valid__contains=moment.date()
    )
    return rates.values_list("rate_bp", flat=True).first()


def find_showback_tenants(tenants: Iterable[str]) -> set[str]:
    """Return which of these tenants only get reports.

    One query, in a scope that sees all of them.
    """
    wanted = set(tenants)
    terms = dict(AccountTerms.objects.filter(tenant__in=wanted).values_list("tenant_id", "payment"))
    return {each for each in wanted if terms.get(each, settings.DEFAULT_PAYMENT_TERMS) == PaymentTerms.SHOWBACK}


def is_showback(tenant_id: str) -> bool:
    """Return whether a tenant only gets reports."""
    return bool(find_showback_tenants([tenant_id]))
