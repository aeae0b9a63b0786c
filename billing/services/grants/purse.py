"""What is left of grants, by the ledger, and who may move it: one transaction of a tenant at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Sum

from billing.domain.granting import Credit
from billing.domain.ledger import AccountType
from billing.models import AccountBalance, Grant, GrantReturn
from ports import database

ALONE = "SELECT pg_advisory_xact_lock(3, hashtext(%s::text))"


class State(StrEnum):
    USABLE = "usable"
    USED_UP = "used_up"
    ENDING = "ending"  # it has ended, and pays what was used before once that month is final
    LAPSED = "lapsed"  # what was left of it is gone


@dataclass(frozen=True, slots=True)
class Stands:
    """A grant as it stands: what is left, what it paid (less what came back), what lapsed; minor units."""

    grant: Grant
    left: int
    paid: int
    lapsed: int
    state: State


def alone(tenant_id: str) -> None:
    """Let nobody else draw on a tenant's grants, end them or give back to them before this transaction ends.

    After whatever else is locked, and before the ledger's balances.
    """
    with database.prepared() as cursor:
        cursor.execute(ALONE, [tenant_id])


def left(tenant_id: str, grants: Iterable[str] | None = None) -> dict[str, int]:
    """Return what is left of a tenant's grants, or of some of them, where anything is; one query."""
    found = AccountBalance.objects.filter(
        tenant_id=tenant_id, account__type=AccountType.WALLET_PROMO, minor__gt=0
    ).exclude(account__ref="")
    if grants is not None:
        found = found.filter(account__ref__in=list(grants))
    return dict(found.values_list("account__ref", "minor"))


def credits(tenant_id: str, currency: str) -> list[Credit]:
    """Return what may be drawn on in a currency, in no order; two queries."""
    rest = left(tenant_id)
    rows = Grant.objects.filter(tenant_id=tenant_id, pk__in=rest, currency=currency, lapse=None)
    return [
        Credit(
            id=grant.pk,
            left=rest[grant.pk],
            priority=grant.priority,
            expires_at=grant.expires_at,
            project=grant.project_id or "",
            offering=grant.offering_id or "",
        )
        for grant in rows
    ]


def standing(grants: Iterable[Grant], *, now: datetime) -> list[Stands]:
    """Return how grants stand; three queries however many they are. Of one tenant's, or as staff."""
    wanted = list(grants)
    keys = [grant.pk for grant in wanted]
    drawn = dict(
        Grant.objects.filter(pk__in=keys).annotate(drawn=Sum("draws__minor")).values_list("pk", "drawn")
    )
    rows = AccountBalance.objects.filter(account__type=AccountType.WALLET_PROMO, account__ref__in=keys)
    rest = dict(rows.values_list("account__ref", "minor"))
    came = (
        GrantReturn.objects.filter(grant__in=keys)
        .values_list("grant")
        .annotate(minor=Sum("minor"))
        .order_by()
    )
    back = dict(came)
    return [
        _stands(grant, rest.get(grant.pk, 0), (drawn[grant.pk] or 0) - back.get(grant.pk, 0), now)
        for grant in wanted
    ]


def _stands(grant: Grant, rest: int, paid: int, now: datetime) -> Stands:
    lapse = getattr(grant, "lapse", None)
    if lapse is not None:
        state = State.LAPSED
    elif rest == 0:
        state = State.USED_UP
    else:
        state = State.ENDING if grant.expires_at and grant.expires_at <= now else State.USABLE
    return Stands(grant, rest, paid, lapse.minor if lapse else 0, state)
