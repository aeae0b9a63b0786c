"""Balances of grants, from the ledger, and the lock that guards them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Sum

from billing.domain.grants import AvailableGrant
from billing.domain.ledger import AccountType
from billing.models import AccountBalance, Grant, GrantReturn
from ports.postgres import sql_statements

GRANTS_LOCK_SQL = "SELECT pg_advisory_xact_lock(3, hashtext(%s::text))"


class GrantState(StrEnum):
    USABLE = "usable"
    USED_UP = "used_up"
    ENDING = "ending"  # expired; it still pays earlier usage once that month is final
    LAPSED = "lapsed"  # expired, the rest is gone
    REVOKED = "revoked"  # an operator took the rest back


@dataclass(frozen=True, slots=True)
class GrantBalance:
    """Balance of a grant: left, paid (net of returns) and lapsed; minor units."""

    grant: Grant
    left: int
    paid: int
    lapsed: int
    state: GrantState


def lock_grants(tenant_id: str) -> None:
    """Lock a tenant's grants until this transaction ends.

    It guards drawing, expiry and returns. Taken after all other locks, and before the ledger's
    balances.
    """
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(GRANTS_LOCK_SQL, [tenant_id])


def remaining_by_grant(tenant_id: str, grants: Iterable[str] | None = None) -> dict[str, int]:
    """Return the positive balances of a tenant's grants, or of some; one query."""
    found = AccountBalance.objects.filter(
        tenant_id=tenant_id, account__type=AccountType.WALLET_PROMO, minor__gt=0
    ).exclude(account__ref="")
    if grants is not None:
        found = found.filter(account__ref__in=list(grants))
    return dict(found.values_list("account__ref", "minor"))


def usable_grants(tenant_id: str, currency: str) -> list[AvailableGrant]:
    """Return the usable grants in a currency, unordered; two queries."""
    rest = remaining_by_grant(tenant_id)
    rows = Grant.objects.filter(tenant_id=tenant_id, pk__in=rest, currency=currency, lapse=None)
    return [
        AvailableGrant(
            id=grant.pk,
            left=rest[grant.pk],
            priority=grant.priority,
            expires_at=grant.expires_at,
            project=grant.project_id or "",
            offering=grant.offering_id or "",
        )
        for grant in rows
    ]


def grant_balances(grants: Iterable[Grant], *, now: datetime) -> list[GrantBalance]:
    """Return the balances of grants; three queries in total.

    The grants are of one tenant, or the caller has staff scope.
    """
    wanted = list(grants)
    keys = [grant.pk for grant in wanted]
    drawn = dict(Grant.objects.filter(pk__in=keys).annotate(drawn=Sum("draws__minor")).values_list("pk", "drawn"))
    rows = AccountBalance.objects.filter(account__type=AccountType.WALLET_PROMO, account__ref__in=keys)
    rest = dict(rows.values_list("account__ref", "minor"))
    came = GrantReturn.objects.filter(grant__in=keys).values_list("grant").annotate(minor=Sum("minor")).order_by()
    back = dict(came)
    return [
        _grant_balance(grant, rest.get(grant.pk, 0), (drawn[grant.pk] or 0) - back.get(grant.pk, 0), now)
        for grant in wanted
    ]


def _grant_balance(grant: Grant, rest: int, paid: int, now: datetime) -> GrantBalance:
    lapse = getattr(grant, "lapse", None)
    if lapse is not None:
        state = GrantState.REVOKED if lapse.revoked_by else GrantState.LAPSED
    elif rest == 0:
        state = GrantState.USED_UP
    else:
        state = GrantState.ENDING if grant.expires_at and grant.expires_at <= now else GrantState.USABLE
    return GrantBalance(grant, rest, paid, lapse.minor if lapse else 0, state)
