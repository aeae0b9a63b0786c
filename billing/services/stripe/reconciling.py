"""The nightly look at three books: what we charged, what Stripe has, what the ledger says, day by day.

Whatever never reached us is found here: events that were dropped are kept and worked off, payments that still wait
are asked about, and what differs is written down with what to do next, until it agrees. A day is compared a page at
a time, and its row says how far that has come: however many invoices it has, no task lives long.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Exists, F, OuterRef

from billing.domain.stripe_compare import Difference, Kind, compare
from billing.gateways.stripe import looking
from billing.gateways.stripe.looking import InvoiceThere
from billing.models import DayPhase, StripeCharge, StripeDay, StripeSeen
from billing.services.stripe import differences, inbox, three_books
from billing.services.stripe.applying import bring_forward
from ports import doorbell
from ports.payments import Rejected, Unanswered
from tenants.services.walls import as_staff

CLAIM = timedelta(seconds=60)
AGAIN = timedelta(minutes=10)
SETTLING = timedelta(minutes=10)  # what is younger may still be under way
PIECES = 6  # within one task: even where each call takes as long as it may
BATCH = 10  # charges that are looked up one by one
NEXT = {DayPhase.EVENTS: DayPhase.THEIRS, DayPhase.THEIRS: DayPhase.OURS, DayPhase.OURS: None}
Counts = dict[str, int]


def work(day_text: str, *, now: datetime) -> None:
    """Compare some of a day, and ring for the rest. Safe to call at any time, any number of times."""
    mine = StripeDay.objects.filter(day=date.fromisoformat(day_text))
    if not mine.filter(due_at__lte=now).update(due_at=now + CLAIM):
        return
    try:
        for _ in range(PIECES):
            day = mine.get()
            if day.due_at is None:
                return
            _piece(day, now)
    except (Unanswered, Rejected) as trouble:
        mine.update(due_at=now + AGAIN, trouble=str(trouble)[:200])
    else:
        if mine.exclude(due_at=None).update(due_at=now):
            doorbell.ring("billing.stripe_day", day_text, now=now)


def _piece(day: StripeDay, now: datetime) -> None:
    """Compare a page of what comes next, and write how far that is."""
    since = datetime.combine(day.day, time.min, UTC)
    begun = day.begun_at or now
    until = min(since + timedelta(days=1), begun - SETTLING)
    look = {DayPhase.EVENTS: _events, DayPhase.THEIRS: _theirs, DayPhase.OURS: _ours}[DayPhase(day.phase)]
    after, counts = look(day, since, until, now)
    told = {name: F(name) + more for name, more in counts.items()}
    mine = StripeDay.objects.filter(pk=day.pk)
    if after:
        mine.update(after=after, **told)
    elif (phase := NEXT[DayPhase(day.phase)]) is not None:
        mine.update(phase=phase, after="", **told)
    else:
        left = differences.forget(day, before=begun)
        day.seen.all().delete()
        mine.update(due_at=None, checked_at=now, after="", trouble="", differences=left, **told)


def _events(day: StripeDay, since: datetime, until: datetime, now: datetime) -> tuple[str, Counts]:
    """Keep a page of what never reached us."""
    told, after = looking.events(since, until, after=day.after)
    return after, {"events": inbox.keep(told, now=now, found=True)}


def _theirs(day: StripeDay, since: datetime, until: datetime, now: datetime) -> tuple[str, Counts]:
    """Compare a page of the invoices there, each with its charge; what names no charge of ours is odd.

    A charge of another day is compared with that day.
    """
    page, after = looking.invoices(since, until, after=day.after)
    page = [each for each in page if each.payment]
    with as_staff():
        charges = {
            each.pk: each for each in StripeCharge.objects.filter(pk__in=[each.payment for each in page])
        }
    odd, pairs = [], []
    for each in page:
        charge = charges.get(each.payment)
        if charge is None or charge.stripe_id != each.id:
            # Drafts that were given up are dropped or swept there; what was finalized a second time is not.
            odd += [each] if charge is None or each.status != "draft" else []
        elif since <= charge.made_at < since + timedelta(days=1):
            pairs.append((charge, each))
    found = compare([], map(three_books.theirs, odd)) + _compared(day, pairs)
    _write(day, found, [charge for charge, _ in pairs], now)
    return after, {"invoices": len(page), "charges": len(pairs)}


def _ours(day: StripeDay, since: datetime, until: datetime, now: datetime) -> tuple[str, Counts]:
    """Look up the invoices of charges that were not among theirs: made there on another day, or not there at all."""
    seen = StripeSeen.objects.filter(day=day, charge=OuterRef("pk"))
    with as_staff():
        rows = StripeCharge.objects.filter(~Exists(seen), made_at__gte=since, made_at__lt=until)
        batch = list(rows.exclude(stripe_id="").order_by("made_at", "pk")[:BATCH])
    pairs = [(charge, looking.invoice(charge.stripe_id)) for charge in batch]
    _write(day, _compared(day, pairs), batch, now)
    counts = {"charges": len(batch), "invoices": sum(there is not None for _, there in pairs)}
    return batch[-1].pk if batch else "", counts


def _compared(day: StripeDay, pairs: Sequence[tuple[StripeCharge, InvoiceThere | None]]) -> list[Difference]:
    ours = three_books.ours([charge for charge, _ in pairs])
    return compare(ours, [three_books.theirs(there) for _, there in pairs if there is not None])


def _write(day: StripeDay, found: list[Difference], charges: Sequence[StripeCharge], now: datetime) -> None:
    """Write what differs, and that these charges are compared; have those asked about that wait for their answer."""
    differences.write(day, found, {each.pk: each.currency for each in charges}, now=now)
    seen = [StripeSeen(day=day, charge=each.pk) for each in charges]
    StripeSeen.objects.bulk_create(seen, ignore_conflicts=True)
    waiting = {each.ref for each in found if each.kind is Kind.PAID_THERE_OPEN_HERE}
    for charge in charges:
        if charge.pk in waiting:
            bring_forward(charge, now)
