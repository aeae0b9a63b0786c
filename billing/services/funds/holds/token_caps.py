"""Spending caps of API tokens: set with the token, and read with their use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Sum

from billing.domain.money import MAX_MINOR, Money, exponent_of, to_minor_up
from billing.models import TokenCap, TokenCapDay
from broker.models import Offering, OfferingState
from tenants.models import ApiToken, Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, NotAllowed

MAX_OFFERINGS = 50  # offerings per token


@dataclass(frozen=True, slots=True)
class TokenCapRequest:
    """Requested cap of a token: minor units a day and in total, and offerings.

    None means unlimited.
    """

    daily_minor: int | None = None
    total_minor: int | None = None
    offerings: Sequence[str] = ()

    def __bool__(self) -> bool:
        return self.daily_minor is not None or self.total_minor is not None or bool(self.offerings)


@dataclass(frozen=True, slots=True)
class TokenCapUse:
    """A cap, and what is spent or held of it today and in total."""

    cap: TokenCap
    today: int
    in_all: int


def refuse_capped_token(actor: Actor) -> None:
    """Refuse token creation to a capped token: the new one could have no cap."""
    if actor.token and TokenCap.objects.filter(pk=actor.token).exists():
        raise NotAllowed(
            "A token with a cap cannot create tokens.",
            fix="Create it in the portal, or with a token without a cap.",
            rule="token-cap",
        )


def set_token_cap(token: ApiToken, wanted: TokenCapRequest, *, actor: Actor, now: datetime) -> TokenCap | None:
    """Give a new token its cap in the same transaction; None without one."""
    if not wanted:
        return None
    for name, minor in (("daily", wanted.daily_minor), ("total", wanted.total_minor)):
        if minor is not None and not 0 <= minor <= MAX_MINOR:
            raise InvalidValue(name, "The cap must be 0 or more and below the maximum.", fix="Enter a lower amount.")
    cap = TokenCap.objects.create(
        token=token,
        tenant_id=token.tenant_id,
        currency=token.tenant.currency,
        daily_minor=wanted.daily_minor,
        total_minor=wanted.total_minor,
        offerings=_check_offerings(wanted.offerings),
        set_at=now,
    )
    limits = {"daily": wanted.daily_minor, "total": wanted.total_minor}
    audit.record(
        "token.cap",
        token,
        token.name,
        actor=actor,
        now=now,
        **{name: str(Money(minor, cap.currency)) for name, minor in limits.items() if minor is not None},
        **({"offerings": cap.offerings} if cap.offerings else {}),
    )
    return cap


def token_cap_use(tokens: Iterable[ApiToken], *, tenant: Tenant, now: datetime) -> dict[str, TokenCapUse]:
    """Return by token the use of its cap; three queries."""
    caps = {cap.pk: cap for cap in TokenCap.objects.filter(token__in=[token.pk for token in tokens])}
    if not caps:
        return {}
    today = now.astimezone(ZoneInfo(tenant.time_zone)).date()
    days = TokenCapDay.objects.filter(cap__in=list(caps)).order_by()
    in_all = dict(days.values_list("cap").annotate(num=Sum("taken_num")))
    this_day = dict(days.filter(day=today).values_list("cap", "taken_num"))
    return {
        key: TokenCapUse(
            cap, *(to_minor_up(int(nums.get(key, 0)), exponent_of(cap.currency)) for nums in (this_day, in_all))
        )
        for key, cap in caps.items()
    }


def _check_offerings(offerings: Sequence[str]) -> list[str]:
    named = sorted(set(offerings))
    if len(named) > MAX_OFFERINGS:
        raise InvalidValue(
            "offerings",
            f"A token can be restricted to at most {MAX_OFFERINGS} offerings.",
            fix="Select fewer offerings.",
        )
    known = Offering.objects.filter(pk__in=named).exclude(state=OfferingState.DRAFT)
    if unknown := sorted(set(named) - set(known.values_list("pk", flat=True))):
        raise InvalidValue(
            "offerings", f"Offering {unknown[0]} was not found.", fix="Select offerings from the catalogue."
        )
    return named
