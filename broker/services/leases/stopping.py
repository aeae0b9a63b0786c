"""Stopping a lease that keeps its volume, and starting it again: nothing is held or charged meanwhile."""

from datetime import datetime, timedelta

from django.db import transaction

from broker.domain.states import EndReason, LeaseState
from broker.models import Allocation, Lease, OfferingState, StaleLease
from broker.services import gates, quotas
from broker.services.capacity import pool_of
from broker.services.leases.ending import (
    TRIES,
    AlreadyOver,
    end_of_term,
    is_over,
    last_moment,
    used_unit_seconds,
)
from broker.services.leases.request import MIN_DURATION_S, OfferingRetired
from broker.services.moving import crossing
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.quotas import hold_off_new
from tenants.services.refusals import Refused


class NotActive(Refused):
    code, status, title = "not-active", 409, "Only an active lease can be stopped"


class NotStopped(Refused):
    code, status, title = "not-stopped", 409, "Only a stopped lease can be started"


class NothingKept(Refused):
    code, status, title = "nothing-kept", 409, "Nothing of it would be left"


class TimeSpent(Refused):
    code, status, title = "time-spent", 409, "Its time is used up"


STARTED = (LeaseState.QUEUED, LeaseState.PROVISIONING, LeaseState.ACTIVE)
ENDED = (LeaseState.RELEASING, LeaseState.RELEASED)


def stop(lease: Lease, *, actor: Actor, now: datetime) -> None:
    """End the charging of an active lease and take it off its card; what lies on its volume stays.

    One that is stopping or stopped stays as it is.
    """
    for _ in range(TRIES):
        try:
            if lease.state in (LeaseState.STOPPING, LeaseState.STOPPED):
                crossing.call_off(lease, why="stopped by its tenant while it was moved", now=now)
                return
            _may_stop(lease, now)
            _stop(lease, actor=actor, now=now)
        except StaleLease:
            lease.refresh_from_db()
        else:
            return
    raise StaleLease(lease.pk)


def _may_stop(lease: Lease, now: datetime) -> None:
    _not_over(lease, now)
    if lease.state != LeaseState.ACTIVE:
        raise NotActive(f"{lease.name} is {lease.state}.", fix="Wait until it is active, or release it.")
    if lease.volume_id is None:
        raise NothingKept(
            f"{lease.name} has no volume, so all that it wrote goes with it.",
            fix="Release it, and launch the next one with a volume.",
        )


def _stop(lease: Lease, *, actor: Actor, now: datetime) -> None:
    cause = "stopped by the tenant; its volume is kept"
    pause(lease, reason=EndReason.BY_TENANT, cause=cause, actor=actor, now=now)
    _record("lease.stop", lease, actor=actor, now=now)


def pause(lease: Lease, *, reason: EndReason, cause: str, actor: Actor, now: datetime) -> None:
    """End the charging of an active lease and have it taken off its card; what comes then is for others to say."""
    at = max(last_moment(lease, now=now).replace(microsecond=0), lease.at)  # as the ledger will have it
    since = (lease.active_at or at).replace(microsecond=0)
    lease.move(
        LeaseState.STOPPING,
        now=at,
        actor=actor,
        reason=reason,
        cause=cause,
        spent_s=lease.spent_s + int((at - since).total_seconds()),
        active_at=None,
        ends_at=None,
        seen_at=None,
        due_at=now + timedelta(seconds=10),
        progress={},
    )
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)


def rest(lease: Lease, *, now: datetime) -> None:
    """Give capacity and quota back once nothing of the lease runs any longer, and wake the queue."""
    lease.move(
        LeaseState.STOPPED,
        now=now,
        cause="confirmed gone; its volume is kept",
        claimed_until=None,
        due_at=lease.end_date,
        conditions={},
        progress={},
        tries=0,
    )
    left = max(now, lease.at)
    Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None).update(released_at=left)
    quotas.set_aside(lease, used_unit_seconds=used_unit_seconds(lease))
    doorbell.ring("broker.serve", "|".join(pool_of(lease.offering)), now=now)


@transaction.atomic
def start(lease: Lease, *, actor: Actor, now: datetime) -> Lease:
    """Queue a stopped lease again for what is left of its time, if every gate lets it pass.

    One that has been started again stays as it is. Raises Refused and changes nothing otherwise.
    """
    hold_off_new(lease.tenant_id)  # before the row is locked: whoever makes a quota locks rows, too
    lease = (
        Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    )
    if lease.waits_since and lease.state in STARTED:
        return lease
    _may_start(lease, now)
    lease.asked_with = actor.token
    gates.pass_all(lease, now=now)
    lease.move(
        LeaseState.QUEUED,
        now=now,
        actor=actor,
        cause="started again",
        quota_uses=lease.quota_uses,
        waits_since=now,
        waits_for="",
        due_at=lease.end_date,
    )
    _record("lease.start", lease, actor=actor, now=now)
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
    return lease


def _may_start(lease: Lease, now: datetime) -> None:
    _not_over(lease, now)
    if lease.state != LeaseState.STOPPED:
        raise NotStopped(f"{lease.name} is {lease.state}.", fix="Stop it first, or wait until it is stopped.")
    if lease.offering.state == OfferingState.RETIRED:
        raise OfferingRetired(
            f"{lease.offering.label} starts no leases any longer.",
            fix="Release this one, and launch another on the same volume.",
        )
    if lease.max_duration_s - lease.spent_s < MIN_DURATION_S:
        raise TimeSpent(
            f"{lease.name} was active for {lease.spent_s} s of the {lease.max_duration_s} s it was asked for.",
            fix="Extend it first.",
        )


def _not_over(lease: Lease, now: datetime) -> None:
    if lease.state in ENDED:
        raise AlreadyOver(f"{lease.name} is {lease.state}.", fix="Launch a new one on the same volume.")
    if is_over(lease, now):
        raise AlreadyOver(
            f"{lease.name} reached its end at {end_of_term(lease):%Y-%m-%d %H:%M:%S} UTC.",
            fix="Launch a new one on the same volume.",
        )


def _record(action: str, lease: Lease, *, actor: Actor, now: datetime) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=lease.tenant_id,
        subject_id=lease.pk,
        subject_label=lease.name,
        spent_s=lease.spent_s,
    )
