"""Celery tasks of billing: each reads the clock, calls one service and logs failures."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import structlog

from billing.services.approvals import approval_decisions
from billing.services.emails import email_delivery, lease_emails
from billing.services.funds.budgets import budget_alerts, budget_stops
from billing.services.funds.grants import grant_expiry
from billing.services.invoicing import metering
from billing.services.invoicing.corrections import correction_bookings
from billing.services.invoicing.month_close import close_month
from billing.services.ledger import invariant_checks, ledger_seal, missing_postings
from billing.services.payments import payment_creation
from billing.services.payments.bank_receipts import receipt_assignment
from billing.services.payments.dunning import dunning_steps, overdue_status
from billing.services.payments.gateway_transactions import GatewayTransactions
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from billing.services.payments.stripe import (
    card_setup,
    payment_cards,
    reconciliation,
    reconciliation_schedule,
    webhook_events,
    webhook_inbox,
)
from billing.services.payments.topups import automatic_topups
from billing.services.payments.topups.topup_collection import TOPUPS
from billing.services.rating import storage_rating
from ports import clock, outbox
from ports.outbox import task

log = structlog.get_logger(__name__)
# Seconds after which a message that a sweep sent is dropped: the next sweep has repeated it.
SWEEP_EXPIRES_S, STRIPE_DAY_EXPIRES_S = 30, 600
GATEWAY_TRANSACTIONS: tuple[GatewayTransactions[Any], ...] = (PAYMENTS, TOPUPS, REFUND_TRANSACTIONS)


@task("billing.rate")
def rate() -> None:
    """Rate the usage that ended since the last run."""
    outcome = metering.run_metering(now=clock.now())
    for gap in outcome.gaps:
        log.error("price gap", lease_id=gap.lease, gap=str(gap))
    for one in outcome.broken:
        log.error("tenant could not be charged", tenant=one.tenant, why=one.why)


@task("billing.close_due")
def close_due() -> None:
    """Rate the volumes, close past months and expire grants."""
    now = clock.now()
    storage_rating.rate_volumes_daily(now=now)
    closed = close_month.close_due_months(now=now)
    grant_expiry.expire_due_grants(now=now)
    _log_open_months(closed)


def _log_open_months(closed: close_month.CloseResult) -> None:
    """Log which months stay open, and why."""
    for gap in closed.gaps:
        log.error("price gap keeps a month open", lease_id=gap.lease, gap=str(gap))
    for month in closed.waiting:
        write_log = log.error if month.broken else log.warning
        write_log("month could not be closed yet", tenant=month.tenant_id, month=month.label, why=month.why)


@task("billing.expire_approvals")
def expire_approvals() -> None:
    """Expire the requests for approval that nobody decided in time."""
    approval_decisions.expire_due(now=clock.now())


@task("billing.post_and_seal_ledger")
def post_and_seal_ledger() -> None:
    """Post missing transfers and pending corrections, and seal the ledger."""
    now = clock.now()
    missing_postings.post_missing(now=now)
    correction_bookings.book_approved_corrections(now=now)
    ledger_seal.seal_ledger(now=now)


@task("billing.check_integrity")
def check_integrity() -> None:
    """Check that capacity, charges and ledger agree."""
    for check in invariant_checks.record_checks(now=clock.now()):
        if not check.holds:
            log.error("integrity check failed", check=check.name, found=check.found, examples=check.examples)


@task("billing.book_corrections")
def book_corrections(correction_id: str, tenant_id: str) -> None:
    """Book approved corrections, tenant by tenant; the message only says there are some."""
    correction_bookings.book_approved_corrections(now=clock.now())


@task("billing.collect_due")
def collect_due() -> None:
    """Start due payments and send lost messages again."""
    now = clock.now()
    receipt_assignment.assign_waiting_receipts(now=now)
    payment_creation.open_due_payments(now=now)
    automatic_topups.open_due_topups(now=now)
    for message in _due_messages(now):
        outbox.send(*message, expires_s=SWEEP_EXPIRES_S)


def _due_messages(now: datetime) -> Iterator[outbox.TaskMessage]:
    """Yield the messages of payments, top-ups, refunds, card forms and Stripe events that are due."""
    for transactions in GATEWAY_TRANSACTIONS:
        yield from transactions.due(now=now)
    yield from payment_cards.due_card_forms(now=now)
    for event_id in webhook_inbox.due_events(now=now):
        yield "billing.stripe_event", event_id, ""


@task("billing.run_dunning")
def run_dunning() -> None:
    """Take dunning stages and clear the status of tenants that have paid."""
    now = clock.now()
    overdue_status.clear_overdue_statuses(now=now)
    dunning_steps.run_dunning(now=now)


@task("billing.check_budgets")
def check_budgets() -> None:
    """Alert about budget thresholds and announce stops."""
    budget_alerts.check_budgets(now=clock.now())


@task("billing.stop_budgets")
def stop_budgets() -> None:
    """Execute due budget stops.

    A task of its own, so that slow budget checks cannot delay stops.
    """
    budget_stops.execute_due_stops(now=clock.now())


@task("billing.send_email")
def send_email(email_id: str, tenant_id: str) -> None:
    """Send one e-mail; any failure is recorded with it."""
    now = clock.now()
    try:
        email_delivery.deliver_email(email_id, tenant_id, now=now)
    except Exception as error:
        if not email_delivery.record_unexpected_failure(email_id, tenant_id, error, now=now):
            raise


@task("billing.queue_lease_emails")
def queue_lease_emails() -> None:
    """Queue the e-mails of new notices about leases."""
    lease_emails.queue_lease_emails(now=clock.now())


@task("billing.send_due_emails")
def send_due_emails() -> None:
    """Send lost messages of e-mails again and retry failed ones."""
    for message in email_delivery.due_emails(now=clock.now()):
        outbox.send(*message, expires_s=SWEEP_EXPIRES_S)


def _advance(transactions: GatewayTransactions[Any], row_id: str, tenant_id: str) -> None:
    """Advance a gateway transaction; any failure is recorded with it."""
    now = clock.now()
    try:
        transactions.collect(row_id, tenant_id, now=now)
    except Exception as error:
        if not transactions.record_failure(row_id, tenant_id, error, now=now):
            raise


@task("billing.top_up")
def top_up(topup_id: str, tenant_id: str) -> None:
    """Advance a top-up."""
    _advance(TOPUPS, topup_id, tenant_id)


@task("billing.refund")
def refund(refund_id: str, tenant_id: str) -> None:
    """Advance a refund."""
    _advance(REFUND_TRANSACTIONS, refund_id, tenant_id)


@task("billing.collect")
def collect(payment_id: str, tenant_id: str) -> None:
    """Advance a payment."""
    _advance(PAYMENTS, payment_id, tenant_id)


@task("billing.stripe_event")
def stripe_event(event_id: str) -> None:
    """Process an event from Stripe."""
    webhook_events.process_event(event_id, now=clock.now())


@task("billing.card_form")
def card_form(form_id: str, tenant_id: str) -> None:
    """Open a card form at Stripe, or check whether a card was saved."""
    card_setup.process_card_form(form_id, tenant_id, now=clock.now())


@task("billing.reconcile_stripe")
def reconcile_stripe() -> None:
    """Schedule and start the nightly reconciliation with Stripe."""
    now = clock.now()
    reconciliation_schedule.schedule_days(now=now)
    for day in reconciliation_schedule.due_days(now=now):
        outbox.send("billing.reconcile_stripe_day", day, "", expires_s=STRIPE_DAY_EXPIRES_S)


@task("billing.reconcile_stripe_day")
def reconcile_stripe_day(day: str) -> None:
    """Reconcile one day with Stripe and the ledger."""
    reconciliation.reconcile_day(day, now=clock.now())
