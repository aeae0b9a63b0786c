"""Stop and restart of a lease that keeps its volume; nothing is charged while stopped."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from broker.domain.lifecycle.spot_terms import ReclaimNoticeState
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Allocation, Lease, LeaseLog, OfferingState, StaleLease
from broker.services import quotas
from broker.services.leases import attempt_records, lease_requests, relocation_steps, spot_notices
from broker.services.leases.lease_requests import MIN_DURATION_S, OfferingRetired
from broker.services.leases.lifecycle.termination import (
    TRIES,
    LeaseAlreadyOver,
    charged_until,
    end_of_term,
    is_over,
    used_unit_seconds,
)
from broker.services.placement.available_capacity import pool_of
from broker.services.quotas import block_new_quotas
from broker.services.secrets import lease_secrets, registry_secrets
from ports import outbox
from tenants.services import audit, projects
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError


class LeaseNotActive(ProblemError):
    code, status, title = "not-active", 409, "Only an active lease can be stopped"


class LeaseNotStopped(ProblemError):
    code, status, title = "not-stopped", 409, "Only a stopped lease can be started"


class LeaseWithoutVolume(ProblemError):
    code, status, title = "data-would-be-lost", 409, "Its data would be lost"


class LeaseTimeUsedUp(ProblemError):
    code, status, title = "duration-used-up", 409, "Its duration is used up"


STARTED_STATES = (LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.ACTIVE)
ENDED_STATES = (LeaseState.RELEASING, LeaseState.RELEASED)


def stop_lease(lease: Lease, *, actor: Actor, now: datetime) -> None:
    """Stop charging an active lease and free its GPU; its volume is kept.

    A lease that is stopping or stopped stays as it is.
    """
    for _ in range(TRIES):
        try:
            if lease.state in (LeaseState.STOPPING, LeaseState.STOPPED):
                relocation_steps.cancel_relocation(lease, why="stopped by the tenant during a relocation", now=now)
                attempt_records.cancel_retry(lease)
                _cancel_requeue(lease)
                return
            _check_may_stop(lease, now)
            _write_stop(lease, actor=actor, now=now)
        except StaleLease:
            lease.refresh_from_db()
        else:
            return
    raise StaleLease(lease.pk)


def _cancel_requeue(lease: Lease) -> None:
    """Let a lease that is being preempted stay stopped, as its tenant wishes now."""
    if lease.requeue_when_preempted:
        unchanged = Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq)
        if not unchanged.update(requeue_when_preempted=False, version=F("version") + 1):
            raise StaleLease(lease.pk)
        lease.refresh_from_db()


def _check_may_stop(lease: Lease, now: datetime) -> None:
    _check_not_over(lease, now)
    if lease.state != LeaseState.ACTIVE:
        raise LeaseNotActive(f"{lease.name} is {lease.state}.", fix="Wait until it is active, or release it.")
    if lease.volume_id is None:
        raise LeaseWithoutVolume(
            f"{lease.name} has no volume, so all its data would be lost.",
            fix="Release it and launch a new lease with a volume.",
        )


def _write_stop(lease: Lease, *, actor: Actor, now: datetime) -> None:
    cause = "stopped by the tenant; its volume is kept"
    pause_lease(lease, reason=EndReason.BY_TENANT, cause=cause, actor=actor, now=now)
    _record_audit("lease.stop", lease, actor=actor, now=now)


def pause_lease(
    lease: Lease, *, reason: EndReason, cause: str, actor: Actor, now: datetime, at: datetime | None = None
) -> None:
    """Stop charging an active lease and have it removed from its GPU.

    The caller decides what follows: it may be stopped, relocated or queued again. `at` is when it stops, if that
    is known.
    """
    at = max(
        charged_until(lease, now=now, at=at).replace(microsecond=0), lease.state_since
    )  # as the ledger will have it
    since, has_notice = (lease.active_at or at).replace(microsecond=0), lease.reclaim_at is not None
    lease.transition(
        LeaseState.STOPPING,
        now=at,
        actor=actor,
        reason=reason,
        cause=cause,
        active_seconds=lease.active_seconds + int((at - since).total_seconds()),
        active_at=None,
        ends_at=None,
        reclaim_at=None,
        seen_at=None,
        due_at=now + timedelta(seconds=10),
        progress={},
    )
    if has_notice and reason != EndReason.PREEMPTED:
        spot_notices.settle_notice(lease, ReclaimNoticeState.ENDED_EARLY, now=now)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)


def finish_stop(lease: Lease, *, now: datetime, due_at: datetime | None = None) -> None:
    """Return capacity and quota once nothing of the lease runs, and wake the queue."""
    lease.transition(
        LeaseState.STOPPED,
        now=now,
        cause="removal confirmed" + ("; its volume is kept" if lease.volume_id else ""),
        claimed_until=None,
        due_at=due_at or lease.end_date,
        conditions={},
        progress={},
        unfinished_claims=0,
    )
    left = max(now, lease.state_since)
    Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None).update(released_at=left)
    quotas.return_unused_quota(lease, used_unit_seconds=used_unit_seconds(lease))
    LeaseLog.collect_soon(lease.pk, now=now)
    outbox.enqueue("broker.run_queue", "|".join(pool_of(lease.offering)), now=now)


@transaction.atomic
def start_lease(lease: Lease, *, actor: Actor, now: datetime, cause: str = "started again") -> Lease:
    """Queue a stopped lease again for its remaining time, if every gate agrees.

    One that has been started again stays as it is. Raises ProblemError and changes nothing otherwise.
    """
    block_new_quotas(lease.tenant_id)  # before the row is locked: creating a quota locks rows, too
    lease = Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    if lease.requeued_at not in (None, lease.starts_at) and lease.state in STARTED_STATES:
        return lease
    _check_may_start(lease, now)
    projects.require_open(lease.project)
    secrets, pull_secret = _newest_secrets(lease)
    lease.requested_with_token = actor.token
    lease_requests.run_gates(lease, now=now)
    lease.transition(
        LeaseState.QUEUED,
        now=now,
        actor=actor,
        cause=cause,
        quota_uses=lease.quota_uses,
        secrets=secrets,
        pull_secret=pull_secret,
        requeued_at=now,
        pending_reason="",
        due_at=lease.end_date,
    )
    _record_audit("lease.start", lease, actor=actor, now=now)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
    return lease


def _newest_secrets(lease: Lease) -> tuple[lease_secrets.PinnedVersions, dict[str, Any]]:
    """Return the newest versions of a lease's secrets and its registry's login.

    Started again, it gets replaced values.
    """
    lease_secrets.lock_secrets(lease.used_secret_ids)
    secrets = lease_secrets.pin_secrets(lease.secret_ids, project=lease.project)
    return secrets, registry_secrets.newest_pull_secret(lease)


def _check_may_start(lease: Lease, now: datetime) -> None:
    _check_not_over(lease, now)
    if lease.state != LeaseState.STOPPED:
        raise LeaseNotStopped(f"{lease.name} is {lease.state}.", fix="Stop it first, or wait until it is stopped.")
    if lease.offering.state == OfferingState.RETIRED:
        raise OfferingRetired(
            f"{lease.offering.label} accepts no new leases.",
            fix="Release this lease and launch another with the same volume.",
        )
    if lease.max_duration_s - lease.active_seconds < MIN_DURATION_S:
        raise LeaseTimeUsedUp(
            f"{lease.name} was active for {lease.active_seconds} s of the {lease.max_duration_s} s requested.",
            fix="Extend it first.",
        )


def _check_not_over(lease: Lease, now: datetime) -> None:
    if lease.state in ENDED_STATES:
        raise LeaseAlreadyOver(f"{lease.name} is {lease.state}.", fix="Launch a new lease with the same volume.")
    if is_over(lease, now):
        raise LeaseAlreadyOver(
            f"{lease.name} reached its end at {end_of_term(lease):%Y-%m-%d %H:%M:%S} UTC.",
            fix="Launch a new lease with the same volume.",
        )


def _record_audit(action: str, lease: Lease, *, actor: Actor, now: datetime) -> None:
    audit.record(action, lease, actor=actor, now=now, active_seconds=lease.active_seconds)
