"""Gateway transactions: claim a row, ask the gateway without a transaction, write its answer.

An unanswered request is repeated for as long as it takes. A request that the gateway rejects, or
that failed unexpectedly too often in a row, is stuck: it waits for a person, who has the same row
retried.

Whatever is repeated, lost or killed on the way, the gateway is only ever asked with the row's own
id as the idempotency key.
"""

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import structlog
from django.db.models import Case, F, Q, QuerySet, When

from billing.domain.payment_retries import MAX_BACKOFF_S, MAX_UNEXPECTED_FAILURES, backoff_s
from billing.models import GatewayTransaction, PaymentStatus
from billing.models.payments import MAX_REASON_LENGTH, UNSETTLED
from ports import outbox, payments
from ports.payments import Declined, GatewayOutcome, GatewayRejected, OutcomeUnknown, PaymentGateway, Succeeded
from ports.rng import Rng
from tenants.services.actors import BILLING, Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
CLAIM_DURATION = timedelta(seconds=60)  # longer than any task runs
BATCH_SIZE = 500
UNEXPECTED_CODE, MARKED_FAILED_CODE = "unforeseen", "marked_failed"
WORKERS_DIED = f"{MAX_UNEXPECTED_FAILURES} attempts in a row ended because the worker process died."
TransactionRow = TypeVar("TransactionRow", bound=GatewayTransaction)


class TransactionChanged(ProblemError):
    code, status, title = "version-conflict", 409, "It was changed in the meantime"


class GatewayTransactions(ABC, Generic[TransactionRow]):
    """Life cycle of a kind of gateway transaction.

    Each kind defines its rows, its request, and what is posted when money moved.
    """

    name: str  # in logs and the audit log
    title: str  # for people
    task: str  # the worker's task

    @abstractmethod
    def rows(self) -> QuerySet[TransactionRow]:
        """Return all rows, with the related rows that are needed."""

    @abstractmethod
    def send_request(self, gateway: PaymentGateway, row: TransactionRow, *, now: datetime) -> GatewayOutcome:
        """Ask the gateway to move the money, or to make sure it never does.

        The latter if an operator stated that nothing was taken.
        """

    @abstractmethod
    def record(self, event: str, row: TransactionRow, *, actor: Actor, now: datetime, **detail: object) -> None:
        """Write an audit record: open, retry, decline, stuck, succeed, mark_failed."""

    @abstractmethod
    def book(self, row: TransactionRow, *, now: datetime) -> None:
        """Write the consequences of a success, and the ledger postings last."""

    def lock(self, row: TransactionRow) -> None:  # by default, nothing
        """Lock what has to be locked before the row itself."""

    def on_stuck(self, row: TransactionRow, reason: str, *, now: datetime) -> None:
        """Write the consequences of the row being stuck."""

    def on_decline(self, row: TransactionRow, reason: str, *, now: datetime) -> None:
        """Write the consequences of a decline, and the ledger postings last."""

    def collect(self, row_id: str, tenant_id: str, *, now: datetime) -> None:
        """Advance a row by one step.

        Safe to call at any time, any number of times, from anywhere.
        """
        row = self.claim(row_id, tenant_id, now)
        if row is None:
            return
        if row.consecutive_failures >= MAX_UNEXPECTED_FAILURES:
            self.mark_stuck(row, WORKERS_DIED, UNEXPECTED_CODE, now)
            return
        try:
            outcome = self.request_outcome(row, now)
        except OutcomeUnknown as error:
            log.warning(
                f"{self.title} has no response yet", **{self.name: row.pk}, attempts=row.attempts, why=str(error)
            )
            self.schedule_retry(row, error.again_in_s or backoff_s(row.attempts), str(error), now)
        except GatewayRejected as rejection:
            self.mark_stuck(row, rejection.reason, rejection.code, now)
        else:
            self.settle(row, outcome, now)

    def record_failure(self, row_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
        """Record that an attempt begun at `now` failed unexpectedly; return whether it had a row.

        It is retried a few times, with increasing delays. Whether money moved is unknown, as after every
        missing answer.
        """
        with tenant_scope(tenant_id):
            row = (
                self.rows().filter(pk=row_id, status=PaymentStatus.PENDING, claimed_until=now + CLAIM_DURATION).first()
            )
        if row is None:
            return False
        row.consecutive_failures += 1
        kind, times = type(error).__name__, row.consecutive_failures
        subject = {self.name: row.pk}
        log.error(f"{self.title} attempt failed unexpectedly", **subject, times=times, exc_info=error)
        if times >= MAX_UNEXPECTED_FAILURES:
            reason = f"{times} attempts in a row failed unexpectedly, the last with {kind}."
            self.mark_stuck(row, reason, UNEXPECTED_CODE, now)
        else:
            self.schedule_retry(
                row, backoff_s(times), f"the attempt failed unexpectedly, with {kind}", now, consecutive_failures=times
            )
        return True

    def due(self, *, now: datetime) -> list[outbox.TaskMessage]:
        """Return tasks for all rows that are due.

        They cover outbox messages that were lost, and retries whose delay is over.
        """
        with system_scope():
            waiting = self.rows().filter(status=PaymentStatus.PENDING, due_at__lte=now).order_by("due_at", "pk")
            return [(self.task, *pair) for pair in waiting.values_list("pk", "tenant_id")[:BATCH_SIZE]]

    def enqueue(self, row: TransactionRow, *, now: datetime, after_s: int = 0) -> None:
        """Enqueue the row for a worker."""
        outbox.enqueue(self.task, row.pk, tenant_id=row.tenant_id, now=now, after_s=after_s)

    def open(
        self, *, actor: Actor, now: datetime, detail: dict[str, object] | None = None, **fields: Any
    ) -> TransactionRow:
        """Create a row, and enqueue it for a worker."""
        row = self.rows().create(opened_at=now, due_at=now, **fields)
        self.record("open", row, actor=actor, now=now, **(detail or {}))
        self.enqueue(row, now=now)
        return row

    def retry(self, row: TransactionRow, *, actor: Actor, now: datetime) -> None:
        """Retry a stuck row on a person's request."""
        self.reopen(row, now=now)
        self.record("retry", row, actor=actor, now=now)

    def reopen(self, row: TransactionRow, *, now: datetime, mark_failed_reason: str = "") -> None:
        """Retry a stuck row: the same key is asked for again, or given up.

        Raises TransactionChanged if the row changed since it was read.
        """
        fresh = {"status": PaymentStatus.PENDING, "due_at": now, "stuck_at": None, "consecutive_failures": 0}
        values = {"reason": "", "code": "", "claimed_until": None, "mark_failed_reason": mark_failed_reason}
        if not self.if_unchanged(row).update(**fresh, **values):
            raise TransactionChanged(
                f"{self.title.capitalize()} {row.pk} has changed in the meantime.", fix="Reload the page."
            )
        self.enqueue(row, now=now)
        row.refresh_from_db()

    def if_unchanged(self, row: TransactionRow) -> QuerySet[TransactionRow]:
        """Return the row if it is unchanged since it was read, and not claimed since."""
        return self.rows().filter(pk=row.pk, status=row.status, claimed_until=row.claimed_until)

    def uses_current_gateway(self, row: GatewayTransaction) -> bool:
        """Return whether the row's gateway is the one configured now."""
        gateway = payments.gateway()
        return gateway is not None and gateway.name == row.gateway

    def claim(self, row_id: str, tenant_id: str, now: datetime) -> TransactionRow | None:
        """Claim a row for a while; None if it is settled, not due, or claimed.

        An expired claim means that its worker died, or was as good as dead.
        """
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        with tenant_scope(tenant_id):
            own_row = self.rows().filter(free, pk=row_id, status=PaymentStatus.PENDING, due_at__lte=now)
            died = Case(When(claimed_until=None, then=F("consecutive_failures")), default=F("consecutive_failures") + 1)
            if not own_row.update(
                claimed_until=now + CLAIM_DURATION,
                due_at=now + CLAIM_DURATION,
                attempts=F("attempts") + 1,
                consecutive_failures=died,
            ):
                return None
            return self.rows().get(pk=row_id)

    def request_outcome(self, row: TransactionRow, now: datetime) -> GatewayOutcome:
        """Ask the gateway that the row was opened with, and no other.

        It alone knows what became of the key.
        """
        gateway = payments.gateway()
        if gateway is None or gateway.name != row.gateway:
            raise OutcomeUnknown(
                f"it was started through the gateway {row.gateway}, which is no longer configured; configure it"
                f" again until its {self.title}s are settled",
                again_in_s=MAX_BACKOFF_S,
            )
        return self.send_request(gateway, row, now=now)

    def schedule_retry(
        self, row: TransactionRow, seconds: int, trouble: str, now: datetime, *, consecutive_failures: int = 0
    ) -> None:
        """Schedule a retry with the same key, with jitter."""
        after_s = seconds + int(Rng(f"{row.pk} {row.attempts}").uniform(0, seconds // 2))
        again = {"due_at": now + timedelta(seconds=after_s), "claimed_until": None}
        with tenant_scope(row.tenant_id):
            if self._own_claim(row).update(
                **again, last_error=clean_text(trouble), consecutive_failures=consecutive_failures
            ):
                self.enqueue(row, now=now, after_s=after_s)

    def mark_stuck(self, row: TransactionRow, reason: str, code: str, now: datetime) -> None:
        """Mark the row as stuck until a person acts, and report it."""
        stuck = {"status": PaymentStatus.STUCK, "stuck_at": now, "due_at": None, "claimed_until": None}
        reason, code = clean_text(reason), clean_text(code)[:60]
        with tenant_scope(row.tenant_id):
            if self._own_claim(row).update(reason=reason, code=code, last_error="", mark_failed_reason="", **stuck):
                log.error(f"{self.title} needs attention", **{self.name: row.pk}, code=code, why=reason)
                self.record("stuck", row, actor=BILLING, now=now, code=code)
                self.on_stuck(row, reason, now=now)

    def settle(self, row: TransactionRow, outcome: GatewayOutcome, now: datetime) -> None:
        """Write the outcome and all its consequences, in one transaction.

        An answer counts whoever brings it, even if the claim expired or the row got stuck meanwhile.
        """
        with tenant_scope(row.tenant_id):
            self.lock(row)
            own_row = self.rows().filter(pk=row.pk, status__in=UNSETTLED)
            if isinstance(outcome, Declined):
                outcome = declined_as_marked_failed(row.mark_failed_reason) if row.mark_failed_reason else outcome
                columns = decline_columns(outcome, now)
                if own_row.update(**columns):
                    self.record("decline", row, actor=BILLING, now=now, code=columns["code"])
                    self.on_decline(row, columns["reason"], now=now)
            elif own_row.update(**_success_columns(outcome, now)):
                self.record("succeed", row, actor=BILLING, now=now)
                self.book(row, now=now)

    def _own_claim(self, row: TransactionRow) -> QuerySet[TransactionRow]:
        """Return the row as long as our claim on it stands."""
        return self.rows().filter(pk=row.pk, status=PaymentStatus.PENDING, claimed_until=row.claimed_until)


def declined_as_marked_failed(why: str) -> Declined:
    """Return the decline of a row that an operator stated took nothing."""
    return Declined(f"Marked as failed by an operator: {why}", MARKED_FAILED_CODE)


def clean_text(text: str) -> str:
    """Cut a gateway's text to the column's length, without NUL characters."""
    return text.replace("\0", "")[:MAX_REASON_LENGTH]


def decline_columns(outcome: Declined, now: datetime) -> dict[str, Any]:
    """Return the columns of a declined row."""
    values = {"reason": clean_text(outcome.reason), "code": clean_text(outcome.code)[:60]}
    return {"status": PaymentStatus.DECLINED, **values, **_settled_columns(now)}


def _success_columns(outcome: Succeeded, now: datetime) -> dict[str, Any]:
    values = {"reference": clean_text(outcome.reference)[:120], "reason": "", "code": ""}
    return {"status": PaymentStatus.SUCCEEDED, **values, **_settled_columns(now)}


def _settled_columns(now: datetime) -> dict[str, Any]:
    return {"settled_at": now, "due_at": None, "claimed_until": None, "stuck_at": None, "last_error": ""}
