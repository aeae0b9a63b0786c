"""A lease of a tenant that pays beforehand runs on money set aside for it, an hour ahead, and no second without."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Sum

from billing.domain.covering import ENOUGH, SLICE, capped, gross
from billing.domain.money import Money, exponent_of, to_minor, to_minor_up
from billing.models import BillingPeriod, Hold, RatedCharge, Wallet, WalletPart
from billing.models.periods import OPEN
from billing.services.funds.needs import NO_USE, Outlook, uses
from billing.services.tax import standings
from billing.services.wallets import money
from billing.services.wallets.overruns import bear
from billing.services.wallets.taxing import rate_of
from broker.domain.states import LeaseState
from broker.models import Lease
from tenants.services.refusals import Fix, Refused

Parts = dict[int, int]  # by month whose invoice will carry it: exact, with tax


class PaymentRequired(Refused):
    """There is not enough money and credit for a lease to begin or to go on."""

    code, status, title = "payment-required", 402, "There is not enough money in the wallet"


def take(lease: Lease, *, now: datetime) -> None:
    """Set aside what the next hour of a lease may come to, or raise PaymentRequired and take nothing."""
    outlook = Outlook(lease.project.tenant, [lease])
    use = NO_USE if lease._state.adding else uses([lease.pk]).get(lease.pk, NO_USE)
    ahead = outlook.needed(lease, use, now=now, within=SLICE)
    _set(lease, ahead, use.by_month, outlook, now=now, until=now + SLICE)


def extend(lease: Lease, *, now: datetime) -> None:
    """Cover a lease that runs for another hour, or while money runs out, for as long as the next look is away.

    Raises PaymentRequired where there is not even so much: what is covered still lasts for a few minutes.
    """
    outlook, use = Outlook(lease.project.tenant, [lease]), uses([lease.pk]).get(lease.pk, NO_USE)
    try:
        ahead = outlook.needed(lease, use, now=now, within=SLICE)
        _set(lease, ahead, use.by_month, outlook, now=now, until=now + SLICE)
    except PaymentRequired:
        ahead = outlook.needed(lease, use, now=now, within=ENOUGH)
        _set(lease, ahead, use.by_month, outlook, now=now, until=now + ENOUGH)


def close(lease: Lease, *, now: datetime) -> None:
    """Leave taken what a lease that runs no longer was charged; what it used beyond what there was, we bear."""
    outlook, use = Outlook(lease.project.tenant, [lease]), uses([lease.pk]).get(lease.pk, NO_USE)
    _set(lease, {}, use.by_month, outlook, now=now, until=now, over=True)


def begin(lease: Lease, *, now: datetime) -> None:
    """Take what a lease has used so far though nothing was set aside for it, whether there is money for it or not."""
    Hold.objects.filter(lease=lease).update(covers_until=None)
    outlook, use = Outlook(lease.project.tenant, [lease]), uses([lease.pk]).get(lease.pk, NO_USE)
    if lease.ended_at or lease.state == LeaseState.STOPPED:
        wanted = outlook.over(lease, use, now=now)
    else:
        wanted = outlook.needed(lease, use, now=now, within=timedelta(0))
    _set(lease, wanted, use.by_month, outlook, now=now, until=None, over=True)


def drop(lease: Lease) -> None:
    """Set free all that a lease has of a wallet: its tenant pays by invoice."""
    WalletPart.objects.filter(hold__lease=lease).delete()
    Hold.objects.filter(lease=lease).update(covers_until=None)


def invoiced(month: BillingPeriod) -> None:
    """Take what leases had set aside for a month off its tenant's wallet: its invoice draws on the money itself."""
    for _ in Wallet.objects.select_for_update(no_key=True).filter(tenant=month.tenant_id):
        WalletPart.objects.filter(period=month).delete()


def _set(
    lease: Lease,
    wanted: Mapping[int, int],
    charged: Mapping[int, int],
    outlook: Outlook,
    *,
    now: datetime,
    until: datetime | None,
    over: bool = False,
) -> None:
    """Let a lease have just so much. `wanted` is by the month of use; what of that is charged already is in `charged`.

    What was used is looked at once more behind the wallet's lock: an invoice that became final meanwhile has it.
    """
    tenant = lease.project.tenant
    rate_bp = rate_of(tenant, standings.standing(tenant), on=now)
    hold, _ = Hold.objects.get_or_create(
        lease_id=lease.pk,
        defaults={"tenant": tenant, "currency": tenant.currency, "opened_at": now, "looked_at": now},
    )
    wallet = money.locked(tenant)
    months = list(
        BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("span").values_list("pk", flat=True)
    )
    spent, lines = _unbilled(lease, months)
    ahead: Parts = {}
    for month, num in wanted.items():
        rest = num - charged.get(month, 0)
        if rest > 0:
            key = month if month in months else months[0]
            ahead[key] = ahead.get(key, 0) + rest
    pieces = outlook.pieces(lease)
    parts = {
        key: gross(
            spent.get(key, 0) + ahead.get(key, 0),
            rate_bp=rate_bp,
            pieces=lines.get(key, 0) + (pieces if key in ahead else 0),
            currency=wallet.currency,
        )
        for key in spent.keys() | ahead.keys()
    }
    held = {part.period_id: int(part.num) for part in WalletPart.objects.filter(hold=hold)}
    more = sum(parts.values()) - sum(held.values())
    room = money.room(wallet, until=until or now)
    if more > max(room, 0):
        if not over:
            raise _refusal(wallet, more, room)
        if hold.covers_until is not None:
            beyond = more - max(room, 0)
            bear(lease, beyond, wallet.currency, month=months[0], now=now)
            parts = capped(parts, sum(parts.values()) - beyond)
    _write(hold, wallet, parts, spent, held)
    Hold.objects.filter(pk=hold.pk).update(covers_until=until, looked_at=now, seq=lease.seq, settled_at=None)


def _unbilled(lease: Lease, months: list[int]) -> tuple[Parts, dict[int, int]]:
    """Return by month what a lease was charged that is on no final invoice yet, and on how many lines."""
    rows = RatedCharge.objects.filter(lease_id=lease.pk, billed_period_id__in=months).values_list(
        "billed_period_id"
    )
    found = rows.annotate(num=Sum("exact_num"), lines=Count("price_version_id", distinct=True)).order_by()
    spent, lines = dict[int, int](), dict[int, int]()
    for month, num, many in found:
        spent[month], lines[month] = int(num), many
    return spent, lines


def _write(
    hold: Hold, wallet: Wallet, parts: Parts, spent: Mapping[int, int], held: Mapping[int, int]
) -> None:
    """Write the parts, and take away those of months that have an invoice, or nothing in them any longer."""
    rows = [
        WalletPart(
            tenant_id=hold.tenant_id,
            hold=hold,
            wallet=wallet,
            period_id=key,
            num=Decimal(num),
            spent_num=Decimal(min(max(spent.get(key, 0), 0), num)),
        )
        for key, num in sorted(parts.items())
        if num
    ]
    WalletPart.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["tenant", "hold", "period"],
        update_fields=["num", "spent_num"],
    )
    kept = {row.period_id for row in rows}
    if gone := [key for key in held if key not in kept]:
        WalletPart.objects.filter(hold=hold, period__in=gone).delete()


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
