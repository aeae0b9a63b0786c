"""The end of a lease: charging stops when it is releasing, capacity returns when confirmed.

Capacity is returned once the cluster has confirmed that nothing of the lease is left.
"""

from datetime import datetime, timedelta

from broker.domain.lifecycle.lease_transitions import HOLDS_CAPACITY
from broker.domain.lifecycle.states import EndReason, LeaseCondition, LeaseState
from broker.models import Allocation, Lease, LeaseLog, StaleLease
from broker.services import quotas
from broker.services.launch_templates import template_choice
from broker.services.leases import spot_notices
from broker.services.leases.lifecycle import program_ends
from broker.services.placement.available_capacity import pool_of
from broker.services.secrets import secret_store
from ports import outbox
from ports.postgres.sql_statements import fetch_rows, load_sql
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import ProblemError

TRIES = 5
EXPIRING_STATES = {LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.ACTIVE, LeaseState.STOPPED}


class LeaseAlreadyOver(ProblemError):
    code, status, title = "already-over", 409, "This lease has ended"


CAUSE_TEXTS = {
    EndReason.BY_TENANT: "released by the tenant",
    EndReason.BY_OPERATOR: "released by an operator",
    EndReason.EXPIRED: "reached its end",
    EndReason.DEVICE_LOST: "its node or GPU was lost",
    EndReason.PROVISION_TIMEOUT: "not ready in time",
    EndReason.SPEC_REFUSED: "rejected by the cluster",
    EndReason.UNPAID: "the prepaid balance ran out",
    EndReason.PREEMPTED: "preempted",
    EndReason.BUDGET: "its budget was exceeded",
}


def release_lease(
    lease: Lease,
    *,
    reason: EndReason,
    now: datetime,
    actor: Actor = SYSTEM,
    cause: str = "",
    at: datetime | None = None,
) -> None:
    """End a lease in any state; one that is ending already stays as it is.

    `at` dates the end back to the last observation when its node went silent, so that nothing after it
    is charged; without it the end is now, or when its program ended by itself, as far as it was observed.
    Raises LeaseAlreadyOver for a released lease.
    """
    for _ in range(TRIES):
        if lease.state == LeaseState.RELEASED:
            raise LeaseAlreadyOver(
                f"{lease.name} ended at {lease.ended_at:%Y-%m-%d %H:%M:%S} UTC.", fix="Launch a new one."
            )
        if lease.state == LeaseState.RELEASING:
            return
        if reason is EndReason.EXPIRED and not is_over(lease, now):
            return  # extended since it was found to be over
        try:
            release_once(lease, reason=reason, now=now, actor=actor, cause=cause, at=at)
        except StaleLease:
            lease.refresh_from_db()
        else:
            return
    raise StaleLease(lease.pk)


def end_of_term(lease: Lease) -> datetime | None:
    """Return when a lease must end; before it is active only a fixed date applies.

    A spot lease under notice ends with the notice.
    """
    return lease.must_end_at if lease.active_at else lease.end_date


def is_over(lease: Lease, now: datetime) -> bool:
    """Return whether a lease's time is up and it has not ended yet."""
    end = end_of_term(lease)
    return end is not None and end <= now and LeaseState(lease.state) in EXPIRING_STATES


def release_once(
    lease: Lease,
    *,
    reason: EndReason,
    now: datetime,
    actor: Actor = SYSTEM,
    cause: str = "",
    at: datetime | None = None,
) -> None:
    """End a lease as it was read; raise StaleLease if it changed since."""
    held = LeaseState(lease.state) in HOLDS_CAPACITY
    moment = charged_until(lease, now=now, at=at)
    lease.transition(
        LeaseState.RELEASING,
        now=moment,
        actor=actor,
        reason=reason,
        cause=cause or CAUSE_TEXTS.get(reason, str(reason)),
        end_reason=reason.value,
        ended_at=max(moment.replace(microsecond=0), lease.state_since),
        reclaim_at=None,
        due_at=now + timedelta(seconds=10),
        pending_reason="",
        progress={},
    )
    audit.record("lease.release", lease, actor=actor, now=now, reason=reason.value)
    if held:
        outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
    else:
        finish_release(lease, now=now)
        spot_notices.enqueue_check_of_waiting(lease, now=now)


def charged_until(lease: Lease, *, now: datetime, at: datetime | None = None) -> datetime:
    """Return until when a lease that ends or stops now is charged.

    `at` is the end when it is known. What is known of the program's own end proves that it ran until then,
    as does everything that was observed of it.
    """
    own_end = program_ends.observed_program_end(lease) if at is None and lease.state == LeaseState.ACTIVE else None
    last_observed_at = max(filter(None, (lease.seen_at, own_end)), default=None)
    # A cluster's clock may be ahead of ours: future time is not charged.
    at = min(at or own_end or now, now)
    if lease.must_end_at:  # a late check: nothing after its end is charged
        at = min(at, lease.must_end_at)
    if last_observed_at and LeaseCondition.UNREACHABLE in lease.conditions:  # nor after its last observation
        return min(at, last_observed_at)
    if lease.state == LeaseState.ACTIVE and (unreachable_since := _unreachable_since(lease)):
        at = min(at, max(unreachable_since, last_observed_at or lease.state_since))
    return at


def _unreachable_since(lease: Lease) -> datetime | None:
    """Return since when the lease's cluster is unreachable: its later state is unknown."""
    rows = fetch_rows(load_sql("broker/leases/cluster_unreachable_since"), {"lease": lease.pk})
    return rows[0][0] if rows else None


def finish_release(lease: Lease, *, now: datetime) -> None:
    """Return capacity and quota once nothing of the lease is left, and wake the queue."""
    lease.transition(
        LeaseState.RELEASED,
        now=now,
        reason=EndReason(lease.end_reason),
        cause="removal confirmed",
        claimed_until=None,
        due_at=None,
        conditions={},
        progress={},
        env=dict.fromkeys(lease.env, ""),  # nothing needs the values any more
        launch_template=template_choice.with_variables(lease.launch_template, dict.fromkeys(lease.template_env, "")),
    )
    # After the transition: a second worker gets StaleLease and returns nothing twice. Not before its end: a worker
    # with an older clock reading would leave it active for a moment without its placement.
    left = Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None)
    left.update(released_at=max(now, lease.state_since))
    quotas.return_quota(lease, used_unit_seconds=used_unit_seconds(lease))
    secret_store.delete_values_of_ended(lease)
    LeaseLog.collect_soon(lease.pk, now=now)
    model, region = pool_of(lease.offering)
    outbox.enqueue("broker.run_queue", f"{model}|{region}", now=now)


def used_unit_seconds(lease: Lease) -> int:
    """Return milli-unit seconds of being active, as the GPU-hours quota counts them."""
    seconds = lease.active_seconds
    if lease.active_at is not None and lease.ended_at is not None:
        seconds += max(int((lease.ended_at - lease.active_at.replace(microsecond=0)).total_seconds()), 0)
    reserved: int = lease.quota_uses.get("gpu_seconds", {"amount": 0})["amount"]
    return min(seconds * lease.quantity * lease.offering.milli_units, reserved)
