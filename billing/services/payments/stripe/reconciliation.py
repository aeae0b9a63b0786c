"""Nightly reconciliation, day by day, of our charges, Stripe's invoices and the ledger.

It finds whatever never arrived: missed events are stored and processed, pending payments are checked,
and differences are stored with what to do, until they agree. A day is compared a page at a time and its
row stores the position, so no task runs long however many invoices there are.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Exists, F, OuterRef

from billing.domain.stripe_reconciliation import DifferenceKind, ReconciliationDifference, find_differences
from billing.gateways.stripe import lookups
from billing.gateways.stripe.lookups import StripeInvoice
from billing.models import ReconciledCharge, ReconciliationPhase, StripeCharge, StripeReconciliationDay
from billing.services.payments.stripe import book_comparison, book_differences, webhook_inbox
from billing.services.payments.stripe.event_effects import check_payment_now
from ports import outbox
from ports.payments import GatewayRejected, OutcomeUnknown
from tenants.services.rls import staff_scope

CLAIM = timedelta(seconds=60)
RETRY_AFTER = timedelta(minutes=10)
MIN_AGE = timedelta(minutes=10)  # anything younger may still be in progress
PAGES_PER_TASK = 6  # pages per task, so that it ends in time even if every call is slow
BATCH = 10  # charges, which are looked up one by one
NEXT_PHASE = {
    ReconciliationPhase.EVENTS: ReconciliationPhase.THEIRS,
    ReconciliationPhase.THEIRS: ReconciliationPhase.OURS,
    ReconciliationPhase.OURS: None,
}
CountsByName = dict[str, int]


def reconcile_day(day_text: str, *, now: datetime) -> None:
    """Reconcile part of a day and enqueue the rest; idempotent."""
    own_row = StripeReconciliationDay.objects.filter(day=date.fromisoformat(day_text))
    if not own_row.filter(due_at__lte=now).update(due_at=now + CLAIM):
        return
    try:
        for _ in range(PAGES_PER_TASK):
            day = own_row.get()
            if day.due_at is None:
                return
            _compare_page(day, now)
    except (OutcomeUnknown, GatewayRejected) as trouble:
        own_row.update(due_at=now + RETRY_AFTER, last_error=str(trouble)[:200])
    else:
        if own_row.exclude(due_at=None).update(due_at=now):
            outbox.enqueue("billing.reconcile_stripe_day", day_text, now=now)


def _compare_page(day: StripeReconciliationDay, now: datetime) -> None:
    """Compare the next page and store the position."""
    since = datetime.combine(day.day, time.min, UTC)
    begun = day.begun_at or now
    until = min(since + timedelta(days=1), begun - MIN_AGE)
    read_phase = {
        ReconciliationPhase.EVENTS: _store_missed_events,
        ReconciliationPhase.THEIRS: _compare_stripe_invoices,
        ReconciliationPhase.OURS: _compare_our_charges,
    }[ReconciliationPhase(day.phase)]
    after, counts = read_phase(day, since, until, now)
    counted = {name: F(name) + more for name, more in counts.items()}
    own_row = StripeReconciliationDay.objects.filter(pk=day.pk)
    if after:
        own_row.update(after=after, **counted)
    elif (phase := NEXT_PHASE[ReconciliationPhase(day.phase)]) is not None:
        own_row.update(phase=phase, after="", **counted)
    else:
        left = book_differences.delete_resolved(day, before=begun)
        day.seen.all().delete()
        own_row.update(due_at=None, checked_at=now, after="", last_error="", differences=left, **counted)


def _store_missed_events(
    day: StripeReconciliationDay, since: datetime, until: datetime, now: datetime
) -> tuple[str, CountsByName]:
    """Store a page of events that never arrived."""
    events, after = lookups.list_events(since, until, after=day.after)
    return after, {"events": webhook_inbox.store_events(events, now=now, found=True)}


def _compare_stripe_invoices(
    day: StripeReconciliationDay, since: datetime, until: datetime, now: datetime
) -> tuple[str, CountsByName]:
    """Compare a page of Stripe's invoices, each with its charge.

    An invoice without a charge of ours is a difference. A charge of another day is compared with that
    day.
    """
    page, after = lookups.list_invoices(since, until, after=day.after)
    page = [each for each in page if each.payment]
    with staff_scope():
        charges = {each.pk: each for each in StripeCharge.objects.filter(pk__in=[each.payment for each in page])}
    drafts_without_charge, pairs = [], []
    for each in page:
        charge = charges.get(each.payment)
        if charge is None or charge.stripe_id != each.id:
            # Abandoned drafts are deleted or voided there; a second finalized invoice is not.
            drafts_without_charge += [each] if charge is None or each.status != "draft" else []
        elif since <= charge.made_at < since + timedelta(days=1):
            pairs.append((charge, each))
    found = find_differences([], map(book_comparison.stripe_record, drafts_without_charge)) + _differences(day, pairs)
    _store_page(day, found, [charge for charge, _ in pairs], now)
    return after, {"invoices": len(page), "charges": len(pairs)}


def _compare_our_charges(
    day: StripeReconciliationDay, since: datetime, until: datetime, now: datetime
) -> tuple[str, CountsByName]:
    """Look up the invoices of charges that were not among Stripe's for the day.

    They were created there on another day, or do not exist.
    """
    seen = ReconciledCharge.objects.filter(day=day, charge=OuterRef("pk"))
    with staff_scope():
        rows = StripeCharge.objects.filter(~Exists(seen), made_at__gte=since, made_at__lt=until)
        batch = list(rows.exclude(stripe_id="").order_by("made_at", "pk")[:BATCH])
    pairs = [(charge, lookups.get_invoice(charge.stripe_id)) for charge in batch]
    _store_page(day, _differences(day, pairs), batch, now)
    counts = {"charges": len(batch), "invoices": sum(there is not None for _, there in pairs)}
    return batch[-1].pk if batch else "", counts


def _differences(
    day: StripeReconciliationDay, pairs: Sequence[tuple[StripeCharge, StripeInvoice | None]]
) -> list[ReconciliationDifference]:
    local_charges = book_comparison.our_charges([charge for charge, _ in pairs])
    return find_differences(
        local_charges, [book_comparison.stripe_record(there) for _, there in pairs if there is not None]
    )


def _store_page(
    day: StripeReconciliationDay, found: list[ReconciliationDifference], charges: Sequence[StripeCharge], now: datetime
) -> None:
    """Store differences and compared charges; check payments that still wait for an answer."""
    book_differences.store_differences(day, found, {each.pk: each.currency for each in charges}, now=now)
    seen = [ReconciledCharge(day=day, charge=each.pk) for each in charges]
    ReconciledCharge.objects.bulk_create(seen, ignore_conflicts=True)
    waiting = {each.ref for each in found if each.kind is DifferenceKind.PAID_THERE_OPEN_HERE}
    for charge in charges:
        if charge.pk in waiting:
            check_payment_now(charge, now)
