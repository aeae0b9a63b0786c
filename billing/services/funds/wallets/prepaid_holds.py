"""Prepaid holds: leases run on money reserved an hour ahead, never without it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.domain.prepaid_holds import COVER_AHEAD, MIN_COVER, cap_amounts, max_gross
from billing.models import BillingPeriod, Hold, Wallet, WalletPart
from billing.services.funds.costs.hold_context import HoldContext, LeaseHold
from billing.services.funds.grants.overrun_credits import credit_overrun
from billing.services.funds.wallets import wallet_balances
from billing.services.funds.wallets.reserved_tax_rate import max_tax_rate_bp
from billing.services.tax import tax_determination
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.services.errors import Fix, ProblemError

AmountByMonth = dict[int, int]  # by month of the invoice: exact, with tax


class PaymentRequired(ProblemError):
    """Money and credit do not suffice for the lease to begin or continue."""

    code, status, title = "payment-required", 402, "Insufficient wallet balance"


def reserve_next_hour(context: HoldContext, *, now: datetime) -> None:
    """Reserve the next hour's possible cost of a lease, or raise PaymentRequired.

    It takes nothing if it raises.
    """
    _set_hold(context, _cost_ahead(context, COVER_AHEAD, now), now=now, until=now + COVER_AHEAD)


def extend_cover(context: HoldContext, *, now: datetime) -> None:
    """Cover a running lease for another hour, or until the next check.

    The shorter cover is used if money runs out. Raises PaymentRequired if there is not even so much;
    the existing cover still lasts for a few minutes.
    """
    try:
        _set_hold(context, _cost_ahead(context, COVER_AHEAD, now), now=now, until=now + COVER_AHEAD)
    except PaymentRequired:
        _set_hold(context, _cost_ahead(context, MIN_COVER, now), now=now, until=now + MIN_COVER)


def settle_hold(context: HoldContext, *, now: datetime) -> None:
    """Reduce the hold of an ended lease to what was charged.

    We bear what it used beyond the available money.
    """
    _set_hold(context, {}, now=now, until=now, over=True)


def reserve_past_use(context: HoldContext, *, now: datetime) -> None:
    """Reserve what a lease has used so far, even without enough money."""
    lease, uncovered = context.lease, replace(context, hold=replace(context.hold, covers_until=None))
    if lease.ended_at or lease.state == LeaseState.STOPPED:
        wanted = context.max_cost.over(lease, context.usage, now=now)
    else:
        wanted = _cost_ahead(context, timedelta(0), now)
    _set_hold(uncovered, wanted, now=now, until=None, over=True)


def release_hold(lease: Lease) -> None:
    """Release everything that a lease has reserved: its tenant now pays by invoice."""
    WalletPart.objects.filter(hold__lease=lease).delete()
    Hold.objects.filter(lease=lease).update(covers_until=None)


def release_invoiced_month(month: BillingPeriod) -> None:
    """Release the holds of a month that is being invoiced.

    The invoice draws on the money itself.
    """
    for _ in Wallet.objects.select_for_update(no_key=True).filter(tenant=month.tenant_id):
        WalletPart.objects.filter(period=month).delete()


def _cost_ahead(context: HoldContext, within: timedelta, now: datetime) -> dict[int, int]:
    return context.max_cost.needed(context.lease, context.usage, now=now, within=within)


def _set_hold(
    context: HoldContext, wanted: Mapping[int, int], *, now: datetime, until: datetime | None, over: bool = False
) -> None:
    """Set the wallet holds of a lease to what is wanted.

    `wanted` is by month of use, and includes what is charged already. What was used is read again
    behind the wallet's lock, because an invoice that became final meanwhile has it. So is the tax rate:
    a tenant that comes to owe more tax reserves it for the existing parts behind the same lock.
    """
    lease, hold = context.lease, context.hold
    tenant = lease.project.tenant
    wallet = wallet_balances.lock_wallet(tenant)
    rate_bp = max_tax_rate_bp(tenant, tax_determination.get_tax_status(tenant), on=now)
    months, spent, lines, held = _read_unbilled(lease, hold)
    ahead: AmountByMonth = {}
    for month, num in wanted.items():
        rest = num - context.usage.by_month.get(month, 0)
        if rest > 0:
            key = month if month in months else months[0]
            ahead[key] = ahead.get(key, 0) + rest
    pieces = context.max_cost.pieces(lease)
    parts = {
        key: max_gross(
            spent.get(key, 0) + ahead.get(key, 0),
            rate_bp=rate_bp,
            pieces=lines.get(key, 0) + (pieces if key in ahead else 0),
            currency=wallet.currency,
        )
        for key in spent.keys() | ahead.keys()
    }
    more = sum(parts.values()) - sum(held.values())
    room = wallet_balances.wallet_room(wallet, until=until or now)
    if more > max(room, 0):
        if not over:
            raise _payment_required(wallet, more, room)
        if hold.covers_until is not None:
            beyond = more - max(room, 0)
            credit_overrun(lease, beyond, wallet.currency, month=months[0], now=now)
            parts = cap_amounts(parts, sum(parts.values()) - beyond)
    _write_parts(hold, wallet, parts, spent, until)
    if gone := [key for key in held if not parts.get(key)]:
        WalletPart.objects.filter(hold=hold.id, period__in=gone).delete()


def _read_unbilled(lease: Lease, hold: LeaseHold) -> tuple[list[int], AmountByMonth, dict[int, int], dict[int, int]]:
    """Return open months, and by month the lease's charges, lines and holds."""
    months, spent, lines, held = list[int](), dict[int, int](), dict[int, int](), dict[int, int]()
    values = {"tenant": hold.tenant_id, "lease": lease.pk, "hold": hold.id}
    for month, num, many, holds in sql_statements.fetch_rows(load_sql("billing/funds/wallet_holds_by_month"), values):
        months.append(month)
        if num is not None:
            spent[month], lines[month] = int(num), many
        if holds is not None:
            held[month] = int(holds)
    return months, spent, lines, held


def _write_parts(
    hold: LeaseHold, wallet: Wallet, parts: AmountByMonth, spent: Mapping[int, int], until: datetime | None
) -> None:
    """Write the non-zero parts, and until when they cover the lease."""
    rows = [(key, num, min(max(spent.get(key, 0), 0), num)) for key, num in sorted(parts.items()) if num]
    values: dict[str, Any] = {
        "tenant": hold.tenant_id,
        "hold": hold.id,
        "wallet": wallet.pk,
        "until": until,
        "months": [key for key, _, _ in rows],
        "nums": [num for _, num, _ in rows],
        "spent": [charged for _, _, charged in rows],
    }
    with sql_statements.prepared_cursor() as cursor:
        cursor.execute(load_sql("billing/funds/write_wallet_holds"), values)


def _payment_required(wallet: Wallet, more: int, room: int) -> PaymentRequired:
    places = exponent_of(wallet.currency)
    there = Money(to_minor(max(room, 0), places), wallet.currency)
    needed = Money(to_minor_up(more, places), wallet.currency)
    lacks = Money(to_minor_up(more - max(room, 0), places), wallet.currency)
    return PaymentRequired(
        f"{needed} including tax is required for the next hour; {there} is available in the wallet,"
        f" {lacks} is missing.",
        fix=Fix("Top up the wallet, release a lease, or choose a smaller slice.", "GET", "/api/v1/wallet"),
        missing=str(lacks),
    )
