"""When billing happens. A task reads the clock and calls one service; what it could not charge it says aloud."""

import structlog

from billing.services import closing, metering
from billing.services.corrections import booking
from billing.services.dunning import reminding, standing
from billing.services.funds import stopping, watching
from billing.services.grants import ending
from billing.services.ledger import catching_up, sealing
from billing.services.payments import collecting, opening
from billing.services.post import delivering
from billing.services.refunds import collecting as sending
from billing.services.storage import charging
from billing.services.stripe import cards, inbox, planning, reconciling, saving, working
from billing.services.topups import by_itself
from billing.services.topups import collecting as topping
from ports import clock, doorbell
from ports.doorbell import answering

log = structlog.get_logger(__name__)


@answering("billing.rate")
def rate() -> None:
    """Charge what has ended since the last run."""
    outcome = metering.meter(now=clock.now())
    for gap in outcome.gaps:
        log.error("price gap", lease_id=gap.lease, gap=str(gap))
    for one in outcome.broken:
        log.error("a tenant could not be charged", tenant=one.tenant, why=one.why)


@answering("billing.close_due")
def close_due() -> None:
    """Charge the day of volumes, close every month that is over, and end the grants that had paid for those alone."""
    now = clock.now()
    charging.charge_daily(now=now)
    closed = closing.close_due(now=now)
    ending.lapse_due(now=now)
    _tell(closed)


def _tell(closed: closing.Closed) -> None:
    """Say aloud which months stay open, and why."""
    for gap in closed.gaps:
        log.error("price gap keeps a month open", lease_id=gap.lease, gap=str(gap))
    for month in closed.waiting:
        tell = log.error if month.broken else log.warning
        tell("a month could not be closed yet", tenant=month.tenant_id, month=month.label, why=month.why)


@answering("billing.keep_ledger")
def keep_ledger() -> None:
    """Book what an older release did not, and seal what was posted."""
    now = clock.now()
    catching_up.post_missing(now=now)
    booking.book_due(now=now)
    sealing.seal(now=now)


@answering("billing.book_corrections")
def book_corrections(correction_id: str, tenant_id: str) -> None:
    """Go on with what was approved, tenant by tenant; the ring only says that there is something."""
    booking.book_due(now=clock.now())


@answering("billing.collect_due")
def collect_due() -> None:
    """Ask for what is due, and repeat whatever hint was lost."""
    now = clock.now()
    opening.open_due(now=now)
    by_itself.top_up_due(now=now)
    for hint in [*collecting.due(now=now), *topping.due(now=now), *sending.due(now=now), *cards.due(now=now)]:
        doorbell.send(*hint)
    for event_id in inbox.due(now=now):
        doorbell.send("billing.stripe_event", event_id, "")


@answering("billing.remind")
def remind() -> None:
    """Go after what is overdue, and let those stand well who have paid."""
    now = clock.now()
    standing.lift(now=now)
    reminding.remind_due(now=now)


@answering("billing.watch_budgets")
def watch_budgets() -> None:
    """Tell of budgets that are spent to a share, and announce stops."""
    watching.watch(now=clock.now())


@answering("billing.stop_budgets")
def stop_budgets() -> None:
    """Make the stops of budgets whose moment has come, however long it takes to look after the others."""
    stopping.stop_due(now=clock.now())


@answering("billing.deliver")
def deliver(letter_id: str, tenant_id: str) -> None:
    """Send one letter; whatever goes wrong on the way, it is noted with it."""
    now = clock.now()
    try:
        delivering.deliver(letter_id, tenant_id, now=now)
    except Exception as error:
        if not delivering.fall(letter_id, tenant_id, error, now=now):
            raise


@answering("billing.deliver_due")
def deliver_due() -> None:
    """Repeat whatever hint of a letter was lost, and try again what was not taken."""
    for hint in delivering.due(now=clock.now()):
        doorbell.send(*hint)


@answering("billing.top_up")
def top_up(topup_id: str, tenant_id: str) -> None:
    """Take a top-up one step further; whatever a gateway does meanwhile, it is noted with it."""
    now = clock.now()
    try:
        topping.collect(topup_id, tenant_id, now=now)
    except Exception as error:
        if not topping.fall(topup_id, tenant_id, error, now=now):
            raise


@answering("billing.refund")
def refund(refund_id: str, tenant_id: str) -> None:
    """Take a refund one step further; whatever a gateway does meanwhile, it is noted with it."""
    now = clock.now()
    try:
        sending.collect(refund_id, tenant_id, now=now)
    except Exception as error:
        if not sending.fall(refund_id, tenant_id, error, now=now):
            raise


@answering("billing.collect")
def collect(payment_id: str, tenant_id: str) -> None:
    """Take a payment one step further; whatever a gateway does meanwhile, it is noted with the payment."""
    now = clock.now()
    try:
        collecting.collect(payment_id, tenant_id, now=now)
    except Exception as error:
        if not collecting.fall(payment_id, tenant_id, error, now=now):
            raise


@answering("billing.stripe_event")
def stripe_event(event_id: str) -> None:
    """Look at what an event of Stripe's is about."""
    working.work(event_id, now=clock.now())


@answering("billing.card_form")
def card_form(form_id: str, tenant_id: str) -> None:
    """Open a form for a card at Stripe, or look whether one is in it."""
    saving.work(form_id, tenant_id, now=clock.now())


@answering("billing.reconcile_stripe")
def reconcile_stripe() -> None:
    """Have every day compared with Stripe that was not since last night."""
    now = clock.now()
    planning.plan(now=now)
    for day in planning.due(now=now):
        doorbell.send("billing.stripe_day", day, "")


@answering("billing.stripe_day")
def stripe_day(day: str) -> None:
    """Compare a day of ours with Stripe's and with the ledger."""
    reconciling.work(day, now=clock.now())
