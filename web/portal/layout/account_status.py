"""Wallet meter and account status notice of the page layout."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import exponent_of, half_up
from billing.domain.money import format_minor as written
from billing.models import AccountStatus, AccountTerms, PaymentTerms
from billing.services.funds.wallets import wallet_balances
from billing.services.rating import spend
from web.portal.layout import usage_meters
from web.portal.page_context import Scope

HOURS = 24
LOW_RUNWAY_HOURS = 48  # hours of runway below which the wallet meter is red


def tenant_terms(scope: Scope) -> AccountTerms | None:
    """Return the tenant's terms, read once per request."""
    if "terms" not in scope.known:
        scope.known["terms"] = AccountTerms.objects.filter(tenant=scope.tenant).first()
    found: AccountTerms | None = scope.known["terms"]
    return found


def wallet_meter(scope: Scope, *, now: Any) -> list[dict[str, Any]]:
    """Return the wallet meter with its runway, for a prepaid tenant."""
    found = tenant_terms(scope)
    if found is None or found.payment != PaymentTerms.PREPAID:
        return []
    funds = wallet_balances.wallet_funds(scope.tenant, now=now)
    burn = usage_meters.burn_rate(scope, now=now) if scope.whole else spend.hourly_spend(None, scope.tenant, now=now)
    hours = runway_hours(funds.available, burn, funds.currency)
    return [
        {
            "label": _("Wallet"),
            "value": written(funds.available, funds.currency),
            "sub": runway_text(hours),
            "kind": "danger" if hours is not None and hours < LOW_RUNWAY_HOURS else "",
            "href": reverse("wallet"),
            "phone": False,  # no space for it on a small screen
        }
    ]


def runway_hours(minor: int, burn: int, currency: str) -> int | None:
    """Return how many whole hours an amount lasts; None if no spend.

    `burn` is in 10⁻⁹ units an hour.
    """
    if burn <= 0:
        return None
    minor_unit: int = usage_meters.NANO // 10 ** exponent_of(currency)
    return minor * minor_unit // burn


def runway_text(hours: int | None) -> str:
    """Format the runway."""
    if hours is None:
        return "no spend"
    if hours < HOURS * 2:
        return _("{hours} h at this spend rate").format(hours=hours)
    return _("{hours} days at this spend rate").format(hours=half_up(hours, HOURS))


def account_status_notice(scope: Scope) -> dict[str, str] | None:
    """Return the notice of an overdue or suspended tenant."""
    found = tenant_terms(scope)
    if found is None or found.account_status == AccountStatus.GOOD:
        return None
    if found.account_status == AccountStatus.SUSPENDED:
        return {
            "kind": "danger",
            "head": _("New leases are blocked: this tenant is suspended because of overdue invoices."),
            "text": _("Running leases continue. {why}").format(why=found.why),
        }
    return {
        "kind": "warning",
        "head": _("An invoice is overdue."),
        "text": _("Leases are not affected yet. {why}").format(why=found.why),
    }
