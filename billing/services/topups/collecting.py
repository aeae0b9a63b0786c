"""Taking the money of one top-up, by the rules of payments: claim the row, ask with no transaction open, write what was
said. Whatever is repeated, lost or killed on the way, only the top-up's own id is ever the key.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import Case, F, Q, QuerySet, When

from billing.domain.collecting import LONGEST_WAIT_S, MOST_FALLS, wait_s
from billing.models import PaymentStatus, TopUp
from billing.models.payments import UNSETTLED
from billing.services.ledger import posting
from billing.services.payments.collecting import BATCH, CLAIM, DIED, UNFORESEEN, Hint, legible
from billing.services.payments.opening import BILLING
from billing.services.topups import by_itself
from billing.services.topups.opening import record
from ports import doorbell, payments
from ports.chance import Chance
from ports.payments import Charge, Declined, Outcome, Rejected, Unanswered
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)


def collect(topup_id: str, tenant_id: str, *, now: datetime) -> None:
    """Take a top-up one step further. Safe to call at any time, any number of times, from anywhere."""
    topup = _claim(topup_id, tenant_id, now)
    if topup is None:
        return
    if topup.fell >= MOST_FALLS:
        _stick(topup, DIED, UNFORESEEN, now)
        return
    try:
        outcome = _ask(topup, now)
    except Unanswered as silence:
        log.warning("a top-up has no answer", topup=topup.pk, tries=topup.tries, why=str(silence))
        _wait(topup, silence.again_in_s or wait_s(topup.tries), str(silence), now)
    except Rejected as rejection:
        _stick(topup, rejection.reason, rejection.code, now)
    else:
        _settle(topup, outcome, now)


def fall(topup_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
    """Note that a try, begun at `now`, ended as nobody foresaw; tell whether it had come as far as a top-up."""
    with as_tenant(tenant_id):
        topup = TopUp.objects.filter(
            pk=topup_id, status=PaymentStatus.PENDING, claimed_until=now + CLAIM
        ).first()
    if topup is None:
        return False
    fell, kind = topup.fell + 1, type(error).__name__
    log.error("a top-up's try ended as nobody foresaw", topup=topup.pk, times=fell, exc_info=error)
    if fell >= MOST_FALLS:
        _stick(topup, f"{fell} attempts in a row failed, the last with {kind}.", UNFORESEEN, now)
    else:
        _wait(topup, wait_s(fell), f"the attempt failed as nobody foresaw, with {kind}", now, fell=fell)
    return True


def due(*, now: datetime) -> list[Hint]:
    """Return a look at every top-up whose moment has come: hints that were lost, and silences that are over."""
    with as_sweep():
        rows = TopUp.objects.filter(status=PaymentStatus.PENDING, due_at__lte=now).order_by("due_at", "id")
        return [
            ("billing.top_up", key, tenant) for key, tenant in rows.values_list("pk", "tenant_id")[:BATCH]
        ]


def _claim(topup_id: str, tenant_id: str, now: datetime) -> TopUp | None:
    """Take it for ourselves for a while; None when it is settled, not due, or another worker's."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    with as_tenant(tenant_id):
        mine = TopUp.objects.filter(free, pk=topup_id, status=PaymentStatus.PENDING, due_at__lte=now)
        died = Case(When(claimed_until=None, then=F("fell")), default=F("fell") + 1)
        if not mine.update(claimed_until=now + CLAIM, due_at=now + CLAIM, tries=F("tries") + 1, fell=died):
            return None
        return TopUp.objects.get(pk=topup_id)


def _ask(topup: TopUp, now: datetime) -> Outcome:
    gateway = payments.gateway()
    if gateway is None or gateway.name != topup.gateway:
        why = f"it was begun through the gateway {topup.gateway}, which is not set any longer"
        raise Unanswered(why, again_in_s=LONGEST_WAIT_S)
    charge = Charge(
        key=topup.pk, minor=topup.minor, currency=topup.currency, payer=topup.tenant_id, text="Wallet"
    )
    return gateway.charge(charge, now=now)


def _wait(topup: TopUp, seconds: int, trouble: str, now: datetime, *, fell: int = 0) -> None:
    """Ask again later, with the same key; a little apart from the others that met the same silence."""
    after_s = seconds + int(Chance(f"{topup.pk} {topup.tries}").uniform(0, seconds // 2))
    again = {"due_at": now + timedelta(seconds=after_s), "claimed_until": None}
    with as_tenant(topup.tenant_id):
        if _mine(topup).update(**again, trouble=legible(trouble), fell=fell):
            doorbell.ring("billing.top_up", topup.pk, tenant_id=topup.tenant_id, now=now, after_s=after_s)


def _stick(topup: TopUp, reason: str, code: str, now: datetime) -> None:
    """Ask no more until a person says so."""
    stuck = {"status": PaymentStatus.STUCK, "due_at": None, "claimed_until": None, "trouble": ""}
    with as_tenant(topup.tenant_id):
        if _mine(topup).update(reason=legible(reason), code=legible(code)[:60], **stuck):
            log.error("a top-up waits for a person", topup=topup.pk, code=code, why=reason)
            record("topup.stick", topup, actor=BILLING, now=now, code=legible(code)[:60])
            by_itself.stop(topup, legible(reason), now=now)


def _mine(topup: TopUp) -> QuerySet[TopUp]:
    """Return the row as long as our claim on it stands."""
    return TopUp.objects.filter(pk=topup.pk, status=PaymentStatus.PENDING, claimed_until=topup.claimed_until)


def _settle(topup: TopUp, outcome: Outcome, now: datetime) -> None:
    """Write the outcome, and in the same transaction that the money is there; an answer counts whoever brings it."""
    settled = {"settled_at": now, "due_at": None, "claimed_until": None, "trouble": ""}
    with as_tenant(topup.tenant_id):
        mine = TopUp.objects.filter(pk=topup.pk, status__in=UNSETTLED)
        if isinstance(outcome, Declined):
            reason, code = legible(outcome.reason), legible(outcome.code)[:60]
            if mine.update(status=PaymentStatus.DECLINED, reason=reason, code=code, **settled):
                record("topup.decline", topup, actor=BILLING, now=now, code=code)
                by_itself.stop(topup, reason, now=now)
        else:
            told = {"reference": legible(outcome.reference)[:120], "reason": "", "code": ""}
            if mine.update(status=PaymentStatus.SUCCEEDED, **told, **settled):
                record("topup.settle", topup, actor=BILLING, now=now)
                posting.topped_up([topup.pk], now=now)
