"""The nightly look at three books: what we charged, what Stripe has, what the ledger says, day by day.

Whatever never reached us is found here: events that were dropped are kept and worked off, payments that still wait
are asked about, and what differs is written down with what to do next, until it agrees.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

import structlog
from django.db import transaction
from django.db.models import Q

from billing.domain.stripe_compare import Difference, Kind, Ours, Theirs, compare
from billing.gateways.stripe import looking
from billing.gateways.stripe.looking import InvoiceThere
from billing.models import (
    LedgerTransfer,
    Payment,
    PaymentDispute,
    PaymentRefund,
    StripeCharge,
    StripeDay,
    StripeDifference,
    TransferKind,
)
from billing.services.stripe import inbox
from billing.services.stripe.applying import bring_forward
from billing.services.stripe.cards import taken_here
from ports.payments import Rejected, Unanswered
from tenants.services.walls import as_staff

log = structlog.get_logger(__name__)
DAYS = 30  # Stripe tells of its events for so long
CLAIM = timedelta(seconds=60)
AGAIN = timedelta(minutes=10)
EVERY = timedelta(hours=20)  # once a night
SETTLING = timedelta(minutes=10)  # what is younger may still be under way


def plan(*, now: datetime) -> int:
    """Have every day of the last thirty compared once more that was not today; return how many."""
    if not taken_here():
        return 0
    days = [now.date() - timedelta(days=n) for n in range(DAYS)]
    StripeDay.objects.bulk_create([StripeDay(day=day) for day in days], ignore_conflicts=True)
    stale = Q(checked_at=None) | Q(checked_at__lt=now - EVERY)
    return StripeDay.objects.filter(stale, day__in=days, due_at=None).update(due_at=now)


def due(*, now: datetime) -> list[str]:
    """Return the days that wait to be compared, the latest first."""
    waiting = StripeDay.objects.filter(due_at__lte=now).order_by("-day")
    return [str(each) for each in waiting.values_list("day", flat=True)]


def work(day_text: str, *, now: datetime) -> None:
    """Compare one day. Safe to call at any time, any number of times."""
    day = date.fromisoformat(day_text)
    if not StripeDay.objects.filter(day=day, due_at__lte=now).update(due_at=now + CLAIM):
        return
    try:
        found = _look(day, now)
    except (Unanswered, Rejected) as trouble:
        StripeDay.objects.filter(day=day).update(due_at=now + AGAIN, trouble=str(trouble)[:200])
    else:
        StripeDay.objects.filter(day=day).update(due_at=None, checked_at=now, trouble="", **found)


def _look(day: date, now: datetime) -> dict[str, int]:
    since = datetime.combine(day, time.min, UTC)
    until = min(since + timedelta(days=1), now - SETTLING)
    missed = inbox.keep(list(looking.events(since, until)), now=now, found=True)
    theirs = {each.id: each for each in looking.invoices(since, until) if each.payment}
    charges = _charges(since, until, theirs.values())
    theirs |= _elsewhere(charges, theirs)
    differences = compare(_ours(charges), map(_there, theirs.values()))
    _heal(differences, charges, now)
    _write(day, differences, {each.pk: each.currency for each in charges}, now)
    return {
        "charges": len(charges),
        "invoices": len(theirs),
        "events": missed,
        "differences": len(differences),
    }


def _charges(since: datetime, until: datetime, theirs: Iterable[InvoiceThere]) -> list[StripeCharge]:
    """Return the charges of the day, and those that its invoices there are of; what was never sent has none there."""
    made = Q(made_at__gte=since, made_at__lt=until)
    with as_staff():
        rows = StripeCharge.objects.filter(made | Q(pk__in=[each.payment for each in theirs]))
        return list(rows.exclude(stripe_id=""))


def _elsewhere(charges: Iterable[StripeCharge], theirs: dict[str, InvoiceThere]) -> dict[str, InvoiceThere]:
    """Fetch the invoices of the day's charges that were made there on another day."""
    found = {}
    for each in charges:
        if each.stripe_id not in theirs and (there := looking.invoice(each.stripe_id)):
            found[there.id] = there
    return found


def _ours(charges: list[StripeCharge]) -> list[Ours]:
    """Put beside each charge what the ledger has of it, and what of it went back; three queries."""
    ids, back = [each.pk for each in charges], defaultdict[str, int](int)
    with as_staff():
        transfers = LedgerTransfer.objects.filter(
            Q(kind=TransferKind.PAYMENT, ref__in=_invoices(ids)) | Q(kind=TransferKind.TOPUP, ref__in=ids)
        )
        booked = {_key(*row): minor for *row, minor in transfers.values_list("kind", "ref", "idem", "minor")}
        for rows, status in ((PaymentRefund.objects, "succeeded"), (PaymentDispute.objects, "lost")):
            for payment, minor in rows.filter(payment__in=ids, status=status).values_list("payment", "minor"):
                back[payment] += minor
    return [
        Ours(
            each.pk,
            each.stripe_id,
            each.outcome,
            each.minor,
            each.sent_minor,
            booked.get(each.pk),
            back[each.pk],
        )
        for each in charges
    ]


def _key(kind: str, ref: str, idem: str) -> str:
    """Return whose transfer it is: a payment's is called by its invoice and its own id."""
    return ref if kind == TransferKind.TOPUP else idem.rpartition(":")[2]


def _invoices(payments: list[str]) -> list[str]:
    return list(Payment.objects.filter(pk__in=payments).values_list("invoice_id", flat=True))


def _there(each: InvoiceThere) -> Theirs:
    return Theirs(each.id, each.payment, each.status, each.total, each.amount_paid)


def _heal(differences: list[Difference], charges: list[StripeCharge], now: datetime) -> None:
    """Have those asked about that Stripe was paid for and that wait here."""
    waiting = {each.ref for each in differences if each.kind is Kind.PAID_THERE_OPEN_HERE}
    for charge in charges:
        if charge.pk in waiting:
            bring_forward(charge, now)


@transaction.atomic
def _write(day: date, found: list[Difference], currencies: dict[str, str], now: datetime) -> None:
    """Write what differs, keep since when it does, and forget what agrees by now."""
    of = StripeDay.objects.get(day=day)
    rows = [
        StripeDifference(
            day=of,
            kind=each.kind,
            ref=each.ref,
            currency=currencies.get(each.ref, ""),
            ours=each.ours,
            theirs=each.theirs,
            booked=each.booked,
            found_at=now,
            seen_at=now,
        )
        for each in found
    ]
    StripeDifference.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["day", "kind", "ref"],
        update_fields=["ours", "theirs", "booked", "seen_at"],
    )
    StripeDifference.objects.filter(day=of, seen_at__lt=now).delete()
    if found:
        log.error("our books and Stripe's differ", day=str(day), differences=len(found))
