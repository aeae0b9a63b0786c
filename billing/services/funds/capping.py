"""A token with a cap spends no more than that: what its leases may come to is set aside in its days, and in all.

Whoever takes of a cap keeps its row, after the months of all budgets and before the wallet. A lease counts at the
token that asked for it, day by day, until every second of it is charged; whoever extends it.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Sum

from billing.domain.holding import exact_of
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import TokenCap, TokenDay, TokenLease, TokenPart
from billing.services.funds.needs import DailyOutlook, Use, by_day
from broker.models import Lease
from tenants.services.refusals import Fix, NotAllowed, Refused


class CapReached(Refused):
    """The token that asks may not spend so much."""

    code, status, title = "token-cap-reached", 402, "This token may not spend so much"


def take(lease: Lease, use: Use, *, now: datetime) -> None:
    """Let a lease that a token with a cap asks for take of that, or raise CapReached or NotAllowed."""
    cap = TokenCap.objects.select_related("token").select_for_update(of=("self",), no_key=True)
    found = cap.get(pk=lease.asked_with)
    if found.offerings and lease.offering_id not in found.offerings:
        raise NotAllowed(
            f"The token {found.token.name!r} leases only what it names, and {lease.offering.label} is none of that.",
            fix=Fix("Choose an offering that the token names.", "GET", f"/api/v1/tokens/{found.pk}"),
            rule="token-offerings",
        )
    if lease._state.adding:
        of = TokenLease.objects.create(tenant_id=lease.tenant_id, cap=found, lease_id=lease.pk)
    else:
        known = TokenLease.objects.filter(lease_id=lease.pk, cap=found).first()
        if known is None:
            raise NotAllowed(
                f"The token {found.token.name!r} has a cap, and extends and starts only what it asked for itself.",
                fix="Do it in the portal, or with a token without a cap.",
                rule="token-cap",
            )
        of = known
    _write(of, found, lease, _wanted(lease, use, now), force=False)


def follow(lease: Lease, use: Use, *, now: datetime, force: bool) -> None:
    """Bring up what a lease takes of its token's cap, where it has one; raises CapReached unless that is forced."""
    of = TokenLease.objects.filter(lease_id=lease.pk).first()
    if of is None:
        return
    _write(of, _kept(of), lease, _wanted(lease, use, now), force=force)


def settle(lease: Lease, use: Use) -> None:
    """Leave taken what a lease was charged that runs no longer."""
    of = TokenLease.objects.filter(lease_id=lease.pk).first()
    if of is not None:
        charged = by_day(use, lease, lease.project.tenant.time_zone).by_month
        _write(of, _kept(of), lease, charged, force=True)


def _kept(of: TokenLease) -> TokenCap:
    rows = TokenCap.objects.select_related("token").select_for_update(of=("self",), no_key=True)
    return rows.get(pk=of.cap_id)


def _wanted(lease: Lease, use: Use, now: datetime) -> dict[int, int]:
    tenant = lease.project.tenant
    used = by_day(use, lease, tenant.time_zone)
    return DailyOutlook(tenant, [lease]).needed(lease, used, now=now)


def _write(of: TokenLease, cap: TokenCap, lease: Lease, wanted: Mapping[int, int], *, force: bool) -> None:
    held = {part.day.day.toordinal(): part for part in of.parts.select_related("day")}
    days = _days(cap, wanted.keys() | held.keys())
    parts, more = [], 0
    for key in sorted(days):
        num, before = wanted.get(key, 0), int(held[key].num) if key in held else 0
        grows = num - before
        taken = int(days[key].taken_num) + grows
        if grows > 0 and not force and _beyond(cap.daily_minor, cap.currency, taken):
            raise _daily(cap, days[key].day, taken - grows, grows)
        more += grows
        parts.append(TokenPart(tenant_id=of.tenant_id, of=of, day=days[key], num=Decimal(num)))
    if more > 0 and not force and cap.total_minor is not None:
        taken = int(TokenDay.objects.filter(cap=cap).aggregate(num=Sum("taken_num", default=0))["num"])
        if _beyond(cap.total_minor, cap.currency, taken + more):
            raise _total(cap, taken, more)
    TokenPart.objects.bulk_create(
        parts, update_conflicts=True, unique_fields=["tenant", "of", "day"], update_fields=["num"]
    )


def _beyond(minor: int | None, currency: str, num: int) -> bool:
    return minor is not None and num > exact_of(minor, currency)


def _days(cap: TokenCap, wanted: set[int]) -> dict[int, TokenDay]:
    """Return the days of a cap whose row is kept, made where they are missing."""
    named = [date.fromordinal(key) for key in sorted(wanted)]
    missing = [TokenDay(tenant_id=cap.tenant_id, cap=cap, day=day) for day in named]
    TokenDay.objects.bulk_create(missing, ignore_conflicts=True)
    return {row.day.toordinal(): row for row in TokenDay.objects.filter(cap=cap, day__in=named)}


def _daily(cap: TokenCap, day: date, taken: int, more: int) -> CapReached:
    return _refusal(
        cap, f"a day; of {day.day} {day:%B %Y}", cap.daily_minor or 0, taken, f"{more_of(cap, more)} that day"
    )


def _total(cap: TokenCap, taken: int, more: int) -> CapReached:
    return _refusal(cap, "until it ends; of that", cap.total_minor or 0, taken, more_of(cap, more))


def more_of(cap: TokenCap, num: int) -> str:
    return str(Money(to_minor_up(num, exponent_of(cap.currency)), cap.currency))


def _refusal(cap: TokenCap, of: str, minor: int, taken: int, asked: str) -> CapReached:
    left = max(exact_of(minor, cap.currency) - taken, 0)
    rest = Money(to_minor(left, exponent_of(cap.currency)), cap.currency)
    return CapReached(
        f"The token {cap.token.name!r} may spend {Money(minor, cap.currency)} {of} {rest} are left,"
        f" and this could come to {asked}.",
        fix=Fix(
            "Ask for a shorter time or a smaller slice, or make a token with another cap.",
            "GET",
            f"/api/v1/tokens/{cap.pk}",
        ),
        token=cap.pk,
    )
