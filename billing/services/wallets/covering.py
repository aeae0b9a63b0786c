"""A lease of a tenant that pays beforehand runs on money set aside for it, an hour ahead, and no second without."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from billing.domain.covering import ENOUGH, SLICE, capped, gross
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import BillingPeriod, Hold, Wallet, WalletPart
from billing.services.funds.looking import Held, Look
from billing.services.statements import statement
from billing.services.tax import standings
from billing.services.wallets import money
from billing.services.wallets.overruns import bear
from billing.services.wallets.taxing import rate_of
from broker.domain.states import LeaseState
from broker.models import Lease
from ports import database
from tenants.services.refusals import Fix, Refused

Parts = dict[int, int]  # by month whose invoice will carry it: exact, with tax


class PaymentRequired(Refused):
    """There is not enough money and credit for a lease to begin or to go on."""

    code, status, title = "payment-required", 402, "There is not enough money in the wallet"


def take(look: Look, *, now: datetime) -> None:
    """Set aside what the next hour of a lease may come to, or raise PaymentRequired and take nothing."""
    _set(look, _ahead(look, SLICE, now), now=now, until=now + SLICE)


def extend(look: Look, *, now: datetime) -> None:
    """Cover a lease that runs for another hour, or while money runs out, for as long as the next look is away.

    Raises PaymentRequired where there is not even so much: what is covered still lasts for a few minutes.
    """
    try:
        _set(look, _ahead(look, SLICE, now), now=now, until=now + SLICE)
    except PaymentRequired:
        _set(look, _ahead(look, ENOUGH, now), now=now, until=now + ENOUGH)


def close(look: Look, *, now: datetime) -> None:
    """Leave taken what a lease that runs no longer was charged; what it used beyond what there was, we bear."""
    _set(look, {}, now=now, until=now, over=True)


def begin(look: Look, *, now: datetime) -> None:
    """Take what a lease has used so far though nothing was set aside for it, whether there is money for it or not."""
    lease, uncovered = look.lease, replace(look, hold=replace(look.hold, covers_until=None))
    if lease.ended_at or lease.state == LeaseState.STOPPED:
        wanted = look.outlook.over(lease, look.use, now=now)
    else:
        wanted = _ahead(look, timedelta(0), now)
    _set(uncovered, wanted, now=now, until=None, over=True)


def drop(lease: Lease) -> None:
    """Set free all that a lease has of a wallet: its tenant pays by invoice."""
    WalletPart.objects.filter(hold__lease=lease).delete()
    Hold.objects.filter(lease=lease).update(covers_until=None)


def invoiced(month: BillingPeriod) -> None:
    """Take what leases had set aside for a month off its tenant's wallet: its invoice draws on the money itself."""
    for _ in Wallet.objects.select_for_update(no_key=True).filter(tenant=month.tenant_id):
        WalletPart.objects.filter(period=month).delete()


def _ahead(look: Look, within: timedelta, now: datetime) -> dict[int, int]:
    return look.outlook.needed(look.lease, look.use, now=now, within=within)


def _set(
    look: Look, wanted: Mapping[int, int], *, now: datetime, until: datetime | None, over: bool = False
) -> None:
    """Let a lease have just so much. `wanted` is by the month of use, with what of that is charged already.

    What was used is looked at once more behind the wallet's lock: an invoice that became final meanwhile has it. So is
    its tax: whoever comes to owe more of it sets that aside for the parts that are there, behind the same lock.
    """
    lease, hold = look.lease, look.hold
    tenant = lease.project.tenant
    wallet = money.locked(tenant)
    rate_bp = rate_of(tenant, standings.standing(tenant), on=now)
    months, spent, lines, held = _unbilled(lease, hold)
    ahead: Parts = {}
    for month, num in wanted.items():
        rest = num - look.use.by_month.get(month, 0)
        if rest > 0:
            key = month if month in months else months[0]
            ahead[key] = ahead.get(key, 0) + rest
    pieces = look.outlook.pieces(lease)
    parts = {
        key: gross(
            spent.get(key, 0) + ahead.get(key, 0),
            rate_bp=rate_bp,
            pieces=lines.get(key, 0) + (pieces if key in ahead else 0),
            currency=wallet.currency,
        )
        for key in spent.keys() | ahead.keys()
    }
    more = sum(parts.values()) - sum(held.values())
    room = money.room(wallet, until=until or now)
    if more > max(room, 0):
        if not over:
            raise _refusal(wallet, more, room)
        if hold.covers_until is not None:
            beyond = more - max(room, 0)
            bear(lease, beyond, wallet.currency, month=months[0], now=now)
            parts = capped(parts, sum(parts.values()) - beyond)
    _write(hold, wallet, parts, spent, until)
    if gone := [key for key in held if not parts.get(key)]:
        WalletPart.objects.filter(hold=hold.id, period__in=gone).delete()


def _unbilled(lease: Lease, hold: Held) -> tuple[list[int], Parts, dict[int, int], dict[int, int]]:
    """Return the open months, and by month what a lease was charged, on how many lines, and what it holds."""
    months, spent, lines, held = list[int](), dict[int, int](), dict[int, int](), dict[int, int]()
    asked = {"tenant": hold.tenant_id, "lease": lease.pk, "hold": hold.id}
    for month, num, many, holds in database.rows(statement("wallet_wanted"), asked):
        months.append(month)
        if num is not None:
            spent[month], lines[month] = int(num), many
        if holds is not None:
            held[month] = int(holds)
    return months, spent, lines, held


def _write(
    hold: Held, wallet: Wallet, parts: Parts, spent: Mapping[int, int], until: datetime | None
) -> None:
    """Write the parts in which there is anything, and until when they cover the lease."""
    rows = [(key, num, min(max(spent.get(key, 0), 0), num)) for key, num in sorted(parts.items()) if num]
    asked: dict[str, Any] = {
        "tenant": hold.tenant_id,
        "hold": hold.id,
        "wallet": wallet.pk,
        "until": until,
        "months": [key for key, _, _ in rows],
        "nums": [num for _, num, _ in rows],
        "spent": [charged for _, _, charged in rows],
    }
    with database.prepared() as cursor:
        cursor.execute(statement("wallet_parts"), asked)


def _refusal(wallet: Wallet, more: int, room: int) -> PaymentRequired:
    places = exponent_of(wallet.currency)
    there = Money(to_minor(max(room, 0), places), wallet.currency)
    asked = Money(to_minor_up(more, places), wallet.currency)
    lacks = Money(to_minor_up(more - max(room, 0), places), wallet.currency)
    return PaymentRequired(
        f"{asked} have to be there, with tax, for the hour ahead; {there} of the wallet are free, {lacks} are missing.",
        fix=Fix("Top the wallet up, release a lease, or ask for a smaller slice.", "GET", "/api/v1/wallet"),
        missing=str(lacks),
    )
