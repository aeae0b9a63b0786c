"""Moving money by one row: claim it, ask the gateway with no transaction open, write what it said.

A silence is asked about again for as long as it takes. What is no use to ask again, and what went wrong as nobody
foresaw too often in a row, is stuck: it waits for a person, who has the same row asked for again.

Whatever is repeated, lost or killed on the way, the gateway is only ever asked with the row's own id as the key.
"""

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import structlog
from django.db.models import Case, F, Q, QuerySet, When

from billing.domain.collecting import LONGEST_WAIT_S, MOST_FALLS, wait_s
from billing.models import Move, PaymentStatus
from billing.models.moves import LONGEST_REASON, UNSETTLED
from ports import doorbell, payments
from ports.chance import Chance
from ports.payments import Declined, Gateway, Outcome, Rejected, Succeeded, Unanswered
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")
CLAIM = timedelta(seconds=60)  # longer than any task lives
BATCH = 500
UNFORESEEN, UNTAKEN = "unforeseen", "nothing_taken"
DIED = f"{MOST_FALLS} attempts in a row ended with the death of the process that made them."
Hint = tuple[str, str, str]  # task, subject, tenant
Row = TypeVar("Row", bound=Move)


class Moved(Refused):
    code, status, title = "moved-on", 409, "It is no longer as it was"


class Moving(ABC, Generic[Row]):
    """The life of a kind of row; what it is about, and what is booked when money moved, is each kind's own."""

    name: str  # in log and trail
    title: str  # for people
    task: str  # what a worker is rung for

    @abstractmethod
    def rows(self) -> QuerySet[Row]:
        """Return all of them, with what is looked at besides."""

    @abstractmethod
    def ask(self, gateway: Gateway, row: Row, *, now: datetime) -> Outcome:
        """Have the gateway move the money, or see that it never does where operators said that nothing was taken."""

    @abstractmethod
    def record(self, what: str, row: Row, *, actor: Actor, now: datetime, **detail: object) -> None:
        """Write in the audit trail what happened: open, retry, decline, stick, succeed, nothing_taken."""

    @abstractmethod
    def book(self, row: Row, *, now: datetime) -> None:
        """Write what follows from its success, and the books last of all."""

    def lock(self, row: Row) -> None:  # most have nothing
        """Lock what has to be locked before the row itself."""

    def stopped(self, row: Row, reason: str, *, now: datetime) -> None:
        """Write what follows from its being stuck."""

    def declined(self, row: Row, reason: str, *, now: datetime) -> None:
        """Write what follows from its being declined, in the books last of all."""

    def collect(self, row_id: str, tenant_id: str, *, now: datetime) -> None:
        """Take a row one step further. Safe to call at any time, any number of times, from anywhere."""
        row = self.claim(row_id, tenant_id, now)
        if row is None:
            return
        if row.fell >= MOST_FALLS:
            self.stick(row, DIED, UNFORESEEN, now)
            return
        try:
            outcome = self.asked(row, now)
        except Unanswered as silence:
            log.warning(
                f"a {self.title} has no answer", **{self.name: row.pk}, tries=row.tries, why=str(silence)
            )
            self.wait(row, silence.again_in_s or wait_s(row.tries), str(silence), now)
        except Rejected as rejection:
            self.stick(row, rejection.reason, rejection.code, now)
        else:
            self.settle(row, outcome, now)

    def fall(self, row_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
        """Note that a try, begun at `now`, ended as nobody foresaw; tell whether it had come as far as a row.

        It is tried again a few times, less and less often. Whether money moved is unknown, as with every silence.
        """
        with as_tenant(tenant_id):
            row = (
                self.rows().filter(pk=row_id, status=PaymentStatus.PENDING, claimed_until=now + CLAIM).first()
            )
        if row is None:
            return False
        row.fell += 1
        kind, times = type(error).__name__, row.fell
        told = {self.name: row.pk}
        log.error(f"a {self.title}'s try ended as nobody foresaw", **told, times=times, exc_info=error)
        if times >= MOST_FALLS:
            reason = f"{times} attempts in a row failed as nobody foresaw, the last with {kind}."
            self.stick(row, reason, UNFORESEEN, now)
        else:
            self.wait(
                row, wait_s(times), f"the attempt failed as nobody foresaw, with {kind}", now, fell=times
            )
        return True

    def due(self, *, now: datetime) -> list[Hint]:
        """Return a look at every row whose moment has come: hints that were lost, and silences that are over."""
        with as_sweep():
            waiting = (
                self.rows().filter(status=PaymentStatus.PENDING, due_at__lte=now).order_by("due_at", "pk")
            )
            return [(self.task, *pair) for pair in waiting.values_list("pk", "tenant_id")[:BATCH]]

    def ring(self, row: Row, *, now: datetime, after_s: int = 0) -> None:
        """Have a worker look at it."""
        doorbell.ring(self.task, row.pk, tenant_id=row.tenant_id, now=now, after_s=after_s)

    def anew(self, row: Row, *, now: datetime, untaken: str = "") -> None:
        """Let a row that waits for a person go on: the same key is asked for again, or is to be given up.

        Raises Moved where it is no longer as it was read.
        """
        fresh = {"status": PaymentStatus.PENDING, "due_at": now, "stuck_at": None, "fell": 0}
        told = {"reason": "", "code": "", "claimed_until": None, "untaken": untaken}
        if not self.as_read(row).update(**fresh, **told):
            raise Moved(f"{self.title.capitalize()} {row.pk} has just moved on.", fix="Look at it again.")
        self.ring(row, now=now)
        row.refresh_from_db()

    def as_read(self, row: Row) -> QuerySet[Row]:
        """Return the row as long as it stands as it was read, and in nobody else's hands."""
        return self.rows().filter(pk=row.pk, status=row.status, claimed_until=row.claimed_until)

    def asks_here(self, row: Move) -> bool:
        """Tell whether the gateway that it was begun with is the one that collects here."""
        gateway = payments.gateway()
        return gateway is not None and gateway.name == row.gateway

    def claim(self, row_id: str, tenant_id: str, now: datetime) -> Row | None:
        """Take it for ourselves for a while; None when it is settled, not due, or another worker's.

        A claim that ran out is one that its worker died with, or was as good as dead.
        """
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        with as_tenant(tenant_id):
            mine = self.rows().filter(free, pk=row_id, status=PaymentStatus.PENDING, due_at__lte=now)
            died = Case(When(claimed_until=None, then=F("fell")), default=F("fell") + 1)
            if not mine.update(
                claimed_until=now + CLAIM, due_at=now + CLAIM, tries=F("tries") + 1, fell=died
            ):
                return None
            return self.rows().get(pk=row_id)

    def asked(self, row: Row, now: datetime) -> Outcome:
        """Ask the gateway that the row was opened with, and no other: it alone knows what became of the key."""
        gateway = payments.gateway()
        if gateway is None or gateway.name != row.gateway:
            raise Unanswered(
                f"it was begun through the gateway {row.gateway}, which is not set any longer; set it again until"
                f" its {self.title}s are settled",
                again_in_s=LONGEST_WAIT_S,
            )
        return self.ask(gateway, row, now=now)

    def wait(self, row: Row, seconds: int, trouble: str, now: datetime, *, fell: int = 0) -> None:
        """Ask again later, with the same key; a little apart from the others that met the same silence."""
        after_s = seconds + int(Chance(f"{row.pk} {row.tries}").uniform(0, seconds // 2))
        again = {"due_at": now + timedelta(seconds=after_s), "claimed_until": None}
        with as_tenant(row.tenant_id):
            if self._mine(row).update(**again, trouble=legible(trouble), fell=fell):
                self.ring(row, now=now, after_s=after_s)

    def stick(self, row: Row, reason: str, code: str, now: datetime) -> None:
        """Ask no more until a person says so, and see that people learn of it."""
        stuck = {"status": PaymentStatus.STUCK, "stuck_at": now, "due_at": None, "claimed_until": None}
        reason, code = legible(reason), legible(code)[:60]
        with as_tenant(row.tenant_id):
            if self._mine(row).update(reason=reason, code=code, trouble="", untaken="", **stuck):
                log.error(f"a {self.title} waits for a person", **{self.name: row.pk}, code=code, why=reason)
                self.record("stick", row, actor=BILLING, now=now, code=code)
                self.stopped(row, reason, now=now)

    def settle(self, row: Row, outcome: Outcome, now: datetime) -> None:
        """Write the outcome, and with it, in the same transaction, all that follows from it.

        An answer counts whoever brings it, though the claim ran out, or the row got stuck in other hands.
        """
        settled = {"settled_at": now, "due_at": None, "claimed_until": None, "stuck_at": None, "trouble": ""}
        with as_tenant(row.tenant_id):
            self.lock(row)
            mine = self.rows().filter(pk=row.pk, status__in=UNSETTLED)
            if isinstance(outcome, Declined):
                outcome = untaken(row.untaken) if row.untaken else outcome
                reason, code = legible(outcome.reason), legible(outcome.code)[:60]
                if mine.update(status=PaymentStatus.DECLINED, reason=reason, code=code, **settled):
                    self.record("decline", row, actor=BILLING, now=now, code=code)
                    self.declined(row, reason, now=now)
            elif mine.update(**_succeeded(outcome), **settled):
                self.record("succeed", row, actor=BILLING, now=now)
                self.book(row, now=now)

    def _mine(self, row: Row) -> QuerySet[Row]:
        """Return the row as long as our claim on it stands."""
        return self.rows().filter(pk=row.pk, status=PaymentStatus.PENDING, claimed_until=row.claimed_until)


def untaken(why: str) -> Declined:
    """Return what a row is declined as, on the word of operators."""
    return Declined(f"Operators found that nothing was taken: {why}", UNTAKEN)


def legible(text: str) -> str:
    """Cut a gateway's words to what a row holds: PostgreSQL keeps no NUL."""
    return text.replace("\0", "")[:LONGEST_REASON]


def _succeeded(outcome: Succeeded) -> dict[str, str]:
    reference = legible(outcome.reference)[:120]
    return {"status": PaymentStatus.SUCCEEDED, "reference": reference, "reason": "", "code": ""}
