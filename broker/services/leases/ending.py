"""Ending a lease: charging stops with the step to releasing, capacity returns once its absence is confirmed."""

from datetime import datetime, timedelta

from broker.domain.lifecycle import HOLDS_CAPACITY
from broker.domain.states import Condition, EndReason, LeaseState
from broker.models import Allocation, Lease, StaleLease
from broker.services import quotas
from broker.services.capacity import pool_of
from broker.services.leases import own_ends
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.refusals import Refused

TRIES = 5
MAY_EXPIRE = {LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.ACTIVE, LeaseState.STOPPED}


class AlreadyOver(Refused):
    code, status, title = "already-over", 409, "This lease is over"


WORDS = {
    EndReason.BY_TENANT: "released by the tenant",
    EndReason.BY_OPERATOR: "released by an operator",
    EndReason.EXPIRED: "reached its end",
    EndReason.DEVICE_LOST: "its node or card was lost",
    EndReason.PROVISION_TIMEOUT: "not ready in time",
    EndReason.SPEC_REFUSED: "the cluster refused it",
    EndReason.UNPAID: "there was no money for it any longer",
    EndReason.PREEMPTED: "taken back for others",
    EndReason.BUDGET: "its budget has no room for it",
}


def release(
    lease: Lease,
    *,
    reason: EndReason,
    now: datetime,
    actor: Actor = SYSTEM,
    cause: str = "",
    at: datetime | None = None,
) -> None:
    """End a lease, whatever it is doing; a lease that is ending already stays as it is.

    `at` dates the end back to the last proof of life when its node went silent, so that nothing after it
    is charged; without it the end is now, or when its program ended by itself, as far as anybody has seen.
    Raises AlreadyOver for a released lease.
    """
    for _ in range(TRIES):
        if lease.state == LeaseState.RELEASED:
            raise AlreadyOver(
                f"{lease.name} ended at {lease.ended_at:%Y-%m-%d %H:%M:%S} UTC.", fix="Launch a new one."
            )
        if lease.state == LeaseState.RELEASING:
            return
        if reason is EndReason.EXPIRED and not is_over(lease, now):
            return  # extended since somebody found it over
        try:
            _release(lease, reason=reason, now=now, actor=actor, cause=cause, at=at)
        except StaleLease:
            lease.refresh_from_db()
        else:
            return
    raise StaleLease(lease.pk)


def end_of_term(lease: Lease) -> datetime | None:
    """Return when a lease must end as things stand: while it is not active only a fixed date ends it."""
    return lease.ends_at if lease.active_at else lease.end_date


def is_over(lease: Lease, now: datetime) -> bool:
    """Tell whether a lease's time is up and nobody has ended it yet."""
    end = end_of_term(lease)
    return end is not None and end <= now and LeaseState(lease.state) in MAY_EXPIRE


def _release(
    lease: Lease, *, reason: EndReason, now: datetime, actor: Actor, cause: str, at: datetime | None
) -> None:
    held = LeaseState(lease.state) in HOLDS_CAPACITY
    moment = last_moment(lease, now=now, at=at)
    lease.move(
        LeaseState.RELEASING,
        now=moment,
        actor=actor,
        reason=reason,
        cause=cause or WORDS.get(reason, str(reason)),
        end_reason=reason.value,
        ended_at=max(moment.replace(microsecond=0), lease.at),
        due_at=now + timedelta(seconds=10),
        waits_for="",
        progress={},
    )
    audit.record(
        "lease.release",
        actor=actor,
        now=now,
        tenant_id=lease.tenant_id,
        subject_id=lease.pk,
        subject_label=lease.name,
        reason=reason.value,
    )
    if held:
        doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
    else:
        finish(lease, now=now)


def last_moment(lease: Lease, *, now: datetime, at: datetime | None = None) -> datetime:
    """Return until when a lease is charged that ends or stops now, or did so at a moment that is known.

    What is known of its program's own end proves that it ran until then, like everything that was seen of it.
    """
    own_end = own_ends.seen(lease) if at is None and lease.state == LeaseState.ACTIVE else None
    proof = max(filter(None, (lease.seen_at, own_end)), default=None)
    # A cluster's clock may be ahead of ours: what is yet to come is not charged.
    at = min(at or own_end or now, now)
    if lease.ends_at:  # whoever looks late: nothing after its end is charged
        at = min(at, lease.ends_at)
    if proof and Condition.UNREACHABLE in lease.conditions:  # nor after its last proof of life
        return min(at, proof)
    if lease.state == LeaseState.ACTIVE and (silent_since := _silent_since(lease)):
        at = min(at, max(silent_since, proof or lease.at))
    return at


def _silent_since(lease: Lease) -> datetime | None:
    """Return since when nobody hears from a lease's cluster: what it did since then nobody knows."""
    held = Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None)
    return held.values_list("gpu__node__cluster__silent_since", flat=True).first()


def finish(lease: Lease, *, now: datetime) -> None:
    """Give capacity and quota back once nothing of the lease is on the cluster, and wake the queue."""
    lease.move(
        LeaseState.RELEASED,
        now=now,
        reason=EndReason(lease.end_reason),
        cause="confirmed gone",
        claimed_until=None,
        due_at=None,
        conditions={},
        progress={},
    )
    # After the move: who comes second finds the lease moved, and gives nothing back twice. Not before it ended: who
    # read the clock before somebody else did would leave it active for a moment without its place.
    left = Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None)
    left.update(released_at=max(now, lease.at))
    quotas.give_back(lease, used_unit_seconds=used_unit_seconds(lease))
    model, region = pool_of(lease.offering)
    doorbell.ring("broker.serve", f"{model}|{region}", now=now)


def used_unit_seconds(lease: Lease) -> int:
    """Return milli-unit seconds of being active, as the GPU-hours quota counts them."""
    seconds = lease.spent_s
    if lease.active_at is not None and lease.ended_at is not None:
        seconds += max(int((lease.ended_at - lease.active_at.replace(microsecond=0)).total_seconds()), 0)
    asked: int = lease.quota_uses.get("gpu_seconds", {"amount": 0})["amount"]
    return min(seconds * lease.quantity * lease.offering.milli_units, asked)
