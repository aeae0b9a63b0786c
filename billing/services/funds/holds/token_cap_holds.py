"""Holds against token caps: daily and in total, for leases of a capped token.

Whoever takes from a cap locks its row, after the months of all budgets and before the wallet. A
lease counts against the token that requested it, day by day, until every second of it is charged,
whoever extends it.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

from django.db.models import Sum

from billing.domain.lease_holds import exact_from_minor
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import TokenCap, TokenCapDay, TokenCapLease, TokenCapPart
from billing.services.funds.costs.max_costs import DailyMaxCost, LeaseUsage, usage_by_day
from broker.models import Lease
from tenants.services.errors import Fix, NotAllowed, ProblemError


class TokenCapReached(ProblemError):
    """The token's spending cap is reached."""

    code, status, title = "token-cap-reached", 402, "The token's spend cap is exceeded"


def take_token_cap(lease: Lease, use: LeaseUsage, *, now: datetime) -> None:
    """Reserve a lease's possible cost from its token's cap.

    Raises TokenCapReached, or NotAllowed for an offering or a lease that the token may not touch.
    """
    cap = TokenCap.objects.select_related("token").select_for_update(of=("self",), no_key=True)
    found = cap.get(pk=lease.requested_with_token)
    if found.offerings and lease.offering_id not in found.offerings:
        raise NotAllowed(
            f"The token {found.token.name!r} is restricted to certain offerings without {lease.offering.label}.",
            fix=Fix("Choose an offering that the token allows.", "GET", f"/api/v1/tokens/{found.pk}"),
            rule="token-offerings",
        )
    if lease._state.adding:
        of = TokenCapLease.objects.create(tenant_id=lease.tenant_id, cap=found, lease_id=lease.pk)
    else:
        known = TokenCapLease.objects.filter(lease_id=lease.pk, cap=found).first()
        if known is None:
            raise NotAllowed(
                f"The token {found.token.name!r} has a cap and can only extend and start its own leases.",
                fix="Use the portal, or a token without a cap.",
                rule="token-cap",
            )
        of = known
    _write_hold(of, found, lease, _wanted_days(lease, use, now), force=False)


def update_token_cap_hold(lease: Lease, use: LeaseUsage, *, now: datetime, force: bool) -> None:
    """Update what a lease holds of its token's cap, if it has one.

    Raises TokenCapReached, unless `force`d.
    """
    of = TokenCapLease.objects.filter(lease_id=lease.pk).first()
    if of is None:
        return
    _write_hold(of, _locked_cap(of), lease, _wanted_days(lease, use, now), force=force)


def settle_token_cap_hold(lease: Lease, use: LeaseUsage) -> None:
    """Reduce the hold of an ended lease to what was charged."""
    of = TokenCapLease.objects.filter(lease_id=lease.pk).first()
    if of is not None:
        charged = usage_by_day(use, lease, lease.project.tenant.time_zone).by_month
        _write_hold(of, _locked_cap(of), lease, charged, force=True)


def _locked_cap(of: TokenCapLease) -> TokenCap:
    rows = TokenCap.objects.select_related("token").select_for_update(of=("self",), no_key=True)
    return rows.get(pk=of.cap_id)


def _wanted_days(lease: Lease, use: LeaseUsage, now: datetime) -> dict[int, int]:
    tenant = lease.project.tenant
    used = usage_by_day(use, lease, tenant.time_zone)
    return DailyMaxCost(tenant, [lease]).needed(lease, used, now=now)


def _write_hold(of: TokenCapLease, cap: TokenCap, lease: Lease, wanted: Mapping[int, int], *, force: bool) -> None:
    held = {part.day.day.toordinal(): part for part in of.parts.select_related("day")}
    days = _cap_days(cap, wanted.keys() | held.keys())
    parts, more = [], 0
    for key in sorted(days):
        num, before = wanted.get(key, 0), int(held[key].num) if key in held else 0
        grows = num - before
        taken = int(days[key].taken_num) + grows
        if grows > 0 and not force and _exceeds(cap.daily_minor, cap.currency, taken):
            raise _daily_cap_error(cap, days[key].day, taken - grows, grows)
        more += grows
        parts.append(TokenCapPart(tenant_id=of.tenant_id, of=of, day=days[key], num=Decimal(num)))
    if more > 0 and not force and cap.total_minor is not None:
        taken = int(TokenCapDay.objects.filter(cap=cap).aggregate(num=Sum("taken_num", default=0))["num"])
        if _exceeds(cap.total_minor, cap.currency, taken + more):
            raise _total_cap_error(cap, taken, more)
    TokenCapPart.objects.bulk_create(
        parts, update_conflicts=True, unique_fields=["tenant", "of", "day"], update_fields=["num"]
    )


def _exceeds(minor: int | None, currency: str, num: int) -> bool:
    return minor is not None and num > exact_from_minor(minor, currency)


def _cap_days(cap: TokenCap, wanted: set[int]) -> dict[int, TokenCapDay]:
    """Return the days of a locked cap; create missing ones."""
    named = [date.fromordinal(key) for key in sorted(wanted)]
    missing = [TokenCapDay(tenant_id=cap.tenant_id, cap=cap, day=day) for day in named]
    TokenCapDay.objects.bulk_create(missing, ignore_conflicts=True)
    return {row.day.toordinal(): row for row in TokenCapDay.objects.filter(cap=cap, day__in=named)}


def _daily_cap_error(cap: TokenCap, day: date, taken: int, more: int) -> TokenCapReached:
    return _cap_error(
        cap, f"a day; of {day.day} {day:%B %Y}", cap.daily_minor or 0, taken, f"{format_amount_up(cap, more)} that day"
    )


def _total_cap_error(cap: TokenCap, taken: int, more: int) -> TokenCapReached:
    return _cap_error(cap, "until it ends; of that", cap.total_minor or 0, taken, format_amount_up(cap, more))


def format_amount_up(cap: TokenCap, num: int) -> str:
    return str(Money(to_minor_up(num, exponent_of(cap.currency)), cap.currency))


def _cap_error(cap: TokenCap, of: str, minor: int, taken: int, needed: str) -> TokenCapReached:
    left = max(exact_from_minor(minor, cap.currency) - taken, 0)
    rest = Money(to_minor(left, exponent_of(cap.currency)), cap.currency)
    return TokenCapReached(
        f"The token {cap.token.name!r} may spend {Money(minor, cap.currency)} {of} {rest} are left,"
        f" and this lease could cost {needed}.",
        fix=Fix(
            "Choose a shorter duration or a smaller slice, or create a token with another cap.",
            "GET",
            f"/api/v1/tokens/{cap.pk}",
        ),
        token=cap.pk,
    )
