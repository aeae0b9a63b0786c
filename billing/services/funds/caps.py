"""Caps of tokens: set with a token, and read with what is taken of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Sum

from billing.domain.money import HIGHEST, Money, exponent_of, to_minor_up
from billing.models import TokenCap, TokenDay
from broker.models import Offering, OfferingState
from tenants.models import ApiToken, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, NotAllowed

MOST = 50  # offerings


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a token may spend: minor units a day and in all, None for as much as there is, and on what."""

    daily_minor: int | None = None
    total_minor: int | None = None
    offerings: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self.daily_minor is not None or self.total_minor is not None or bool(self.offerings)


@dataclass(frozen=True, slots=True)
class Used:
    """A cap, and what is taken of this day and in all: spent, or set aside for what its leases may still cost."""

    cap: TokenCap
    today: int
    in_all: int


def may_make(actor: Actor) -> None:
    """Refuse a token to whoever comes with a token that has a cap: the new one would have none, or another."""
    if actor.token and TokenCap.objects.filter(pk=actor.token).exists():
        raise NotAllowed(
            "A token with a cap makes no tokens.",
            fix="Make it in the portal, or with a token without a cap.",
            rule="token-cap",
        )


def set_cap(token: ApiToken, wanted: Wanted, *, actor: Actor, now: datetime) -> TokenCap | None:
    """Give a token that was made just now its cap, in the same transaction; None where none is wanted."""
    if not wanted:
        return None
    for name, minor in (("daily", wanted.daily_minor), ("total", wanted.total_minor)):
        if minor is not None and not 0 <= minor <= HIGHEST:
            raise Invalid(name, "A cap is nought or more, and no more than there is.", fix="Send less.")
    cap = TokenCap.objects.create(
        token=token,
        tenant_id=token.tenant_id,
        currency=token.tenant.currency,
        daily_minor=wanted.daily_minor,
        total_minor=wanted.total_minor,
        offerings=_checked(wanted.offerings),
        set_at=now,
    )
    said = {"daily": wanted.daily_minor, "total": wanted.total_minor}
    audit.record(
        "token.cap",
        actor=actor,
        now=now,
        tenant_id=token.tenant_id,
        subject_id=token.pk,
        subject_label=token.name,
        **{name: str(Money(minor, cap.currency)) for name, minor in said.items() if minor is not None},
        **({"offerings": cap.offerings} if cap.offerings else {}),
    )
    return cap


def used(tokens: Iterable[ApiToken], *, tenant: Tenant, now: datetime) -> dict[str, Used]:
    """Return by token how those that have a cap stand; three queries."""
    caps = {cap.pk: cap for cap in TokenCap.objects.filter(token__in=[token.pk for token in tokens])}
    if not caps:
        return {}
    today = now.astimezone(ZoneInfo(tenant.time_zone)).date()
    days = TokenDay.objects.filter(cap__in=list(caps)).order_by()
    in_all = dict(days.values_list("cap").annotate(num=Sum("taken_num")))
    this_day = dict(days.filter(day=today).values_list("cap", "taken_num"))
    return {
        key: Used(
            cap,
            *(to_minor_up(int(nums.get(key, 0)), exponent_of(cap.currency)) for nums in (this_day, in_all)),
        )
        for key, cap in caps.items()
    }


def _checked(offerings: Sequence[str]) -> list[str]:
    named = sorted(set(offerings))
    if len(named) > MOST:
        raise Invalid("offerings", f"A token names at most {MOST} offerings.", fix="Name fewer.")
    known = Offering.objects.filter(pk__in=named).exclude(state=OfferingState.DRAFT)
    if unknown := sorted(set(named) - set(known.values_list("pk", flat=True))):
        raise Invalid("offerings", f"There is no offering {unknown[0]}.", fix="Name some of the catalogue.")
    return named
