"""What the frame says of a tenant's wallet and of its standing."""

from typing import Any

from django.urls import reverse

from billing.domain.money import exponent_of, half_up
from billing.domain.money import shown as written
from billing.models import PaymentTerms, TenantStanding, TenantTerms
from billing.portal import meters
from billing.portal.pages import Scope
from billing.services import spend
from billing.services.wallets import money

HOURS = 24
SHORT = 48  # hours of runway below which the wallet is shown as running out


def terms_of(scope: Scope) -> TenantTerms | None:
    """Return the tenant's terms, asked for once a page."""
    if "terms" not in scope.known:
        scope.known["terms"] = TenantTerms.objects.filter(tenant=scope.tenant).first()
    found: TenantTerms | None = scope.known["terms"]
    return found


def wallet(scope: Scope, *, now: Any) -> list[dict[str, Any]]:
    """Return the wallet's figure and how long it lasts at this burn, for a tenant that pays beforehand."""
    found = terms_of(scope)
    if found is None or found.payment != PaymentTerms.PREPAID:
        return []
    funds = money.funds(scope.tenant, now=now)
    burn = meters.burning(scope, now=now) if scope.whole else spend.burning(None, scope.tenant, now=now)
    hours = runway(funds.available, burn, funds.currency)
    return [
        {
            "label": "Wallet",
            "value": written(funds.available, funds.currency),
            "sub": lasts(hours),
            "kind": "bad" if hours is not None and hours < SHORT else "",
            "href": reverse("wallet"),
            "phone": False,  # where it would push the others out
        }
    ]


def runway(minor: int, burn: int, currency: str) -> int | None:
    """Return for how many whole hours so much lasts at a burn of 10⁻⁹ units an hour; None where nothing burns."""
    if burn <= 0:
        return None
    coin: int = meters.NANO // 10 ** exponent_of(currency)
    return minor * coin // burn


def lasts(hours: int | None) -> str:
    """Say how long that is."""
    if hours is None:
        return "nothing burns"
    if hours < HOURS * 2:
        return f"{hours} h at this burn"
    return f"{half_up(hours, HOURS)} days at this burn"


def note(scope: Scope) -> dict[str, str] | None:
    """Return what the top of each page says of a tenant that does not stand well."""
    found = terms_of(scope)
    if found is None or found.standing == TenantStanding.GOOD:
        return None
    if found.standing == TenantStanding.SUSPENDED:
        return {
            "kind": "bad",
            "head": "Nothing new can begin: this tenant is suspended for what it owes.",
            "text": f"What runs goes on. {found.why}",
        }
    return {
        "kind": "wait",
        "head": "Something is overdue.",
        "text": f"Everything goes on for now. {found.why}",
    }
