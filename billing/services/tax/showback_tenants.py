"""Tenants that are shown their costs and pay nothing: reports instead of invoices."""

from collections.abc import Iterable

from django.conf import settings

from billing.models import AccountTerms, PaymentTerms


def find_showback_tenants(tenants: Iterable[str]) -> set[str]:
    """Return which of these tenants only get reports; one query, in a scope that sees all of them."""
    wanted = set(tenants)
    terms = dict(AccountTerms.objects.filter(tenant__in=wanted).values_list("tenant_id", "payment"))
    return {each for each in wanted if terms.get(each, settings.DEFAULT_PAYMENT_TERMS) == PaymentTerms.SHOWBACK}


def is_showback(tenant_id: str) -> bool:
    """Return whether a tenant only gets reports."""
    return bool(find_showback_tenants([tenant_id]))
