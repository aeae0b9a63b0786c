"""Extending a lease: the same gates, asked for the difference."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services import gates
from broker.services.leases.ending import AlreadyOver, end_of_term, is_over
from broker.services.leases.request import FARTHEST
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.quotas import hold_off_new
from tenants.services.refusals import Invalid

ENDED = {LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED}


@transaction.atomic
def extend(lease: Lease, *, more_s: int, actor: Actor, now: datetime) -> Lease:
    """Let a lease last longer, if every gate agrees; raises Refused and changes nothing otherwise."""
    hold_off_new(lease.tenant_id)  # before the row is locked: whoever makes a quota locks rows, too
    lease = (
        Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    )
    if LeaseState(lease.state) in ENDED:
        raise AlreadyOver(f"{lease.name} is {lease.state}; it cannot be extended.", fix="Launch a new one.")
    if is_over(lease, now):
        raise AlreadyOver(
            f"{lease.name} reached its end at {end_of_term(lease):%Y-%m-%d %H:%M:%S} UTC.",
            fix="Launch a new one.",
        )
    longest = settings.MAX_LEASE_HOURS * 3600
    if more_s < 60 or lease.max_duration_s + more_s > longest:
        raise Invalid(
            "more_s",
            f"A lease lasts at most {settings.MAX_LEASE_HOURS} h in all, and grows by at least 60 s.",
            fix=f"Extend by at most {max(longest - lease.max_duration_s, 0) // 3600} h.",
        )
    more = timedelta(seconds=more_s)
    if lease.end_date and lease.end_date > now + FARTHEST - more:
        raise Invalid(
            "more_s",
            "Its fixed end would move along, and lies at most five years ahead.",
            fix="Extend it by less.",
        )
    before = lease.max_duration_s
    lease.max_duration_s += more_s
    if lease.end_date:
        lease.end_date += more
    lease.asked_with = actor.token
    if lease.state != LeaseState.STOPPED:  # which passes them when it is started again
        gates.pass_all(lease, now=now)
    if lease.active_at:
        lease.ends_at = end_of(lease, lease.active_at)
    elif lease.state in (LeaseState.QUEUED, LeaseState.STOPPED):
        lease.due_at = lease.end_date
    lease.version = F("version") + 1
    lease.save(update_fields=["max_duration_s", "end_date", "ends_at", "due_at", "quota_uses", "version"])
    lease.refresh_from_db(fields=["version"])
    audit.record(
        "lease.extend",
        actor=actor,
        now=now,
        tenant_id=lease.tenant_id,
        subject_id=lease.pk,
        subject_label=lease.name,
        before_s=before,
        after_s=lease.max_duration_s,
    )
    if lease.ends_at:
        # At once, too: its cluster must hear of it before it ends what it takes for over.
        doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
        ring_at(lease.ends_at, lease, now=now)
    return lease


def end_of(lease: Lease, active_at: datetime) -> datetime:
    """Return when a lease that became active then must end: what is left of its duration, or its date."""
    left = timedelta(seconds=lease.max_duration_s - lease.spent_s)
    by_duration = active_at.replace(microsecond=0) + left
    return min(by_duration, lease.end_date) if lease.end_date else by_duration


def ring_at(ends_at: datetime, lease: Lease, *, now: datetime) -> None:
    """Ask for a look at the very second an active lease must end; the sweep would come up to 5 s later."""
    after_s = max((ends_at - now).total_seconds(), 0)
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
