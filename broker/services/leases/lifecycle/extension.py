"""Extension of a lease: the same gates, for the additional time only."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases import lease_requests
from broker.services.leases.lease_requests import MAX_END_DATE_AHEAD
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver, end_of_term, is_over
from broker.services.quotas import block_new_quotas
from ports import outbox
from tenants.services import audit, projects
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError


class LeaseEndMoved(ProblemError):
    code, status, title = "lease-end-changed", 409, "The end of this lease has changed"


ENDING_OR_ENDED = {LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED}


@transaction.atomic
def extend_lease(
    lease: Lease, *, more_s: int, actor: Actor, now: datetime, expected_end: datetime | None = None
) -> Lease:
    """Extend a lease if every gate agrees; otherwise raise ProblemError and change nothing.

    With `expected_end` only while that is its end, so that an offered extension is made once.
    """
    block_new_quotas(lease.tenant_id)  # before the row is locked: creating a quota locks rows, too
    lease = Lease.objects.select_for_update(of=("self",)).select_related("offering", "project").get(pk=lease.pk)
    if LeaseState(lease.state) in ENDING_OR_ENDED:
        raise LeaseAlreadyOver(f"{lease.name} is {lease.state}; it cannot be extended.", fix="Launch a new one.")
    if is_over(lease, now):
        raise LeaseAlreadyOver(
            f"{lease.name} reached its end at {end_of_term(lease):%Y-%m-%d %H:%M:%S} UTC.", fix="Launch a new one."
        )
    projects.require_open(lease.project)
    if expected_end is not None and lease.ends_at != expected_end:
        raise LeaseEndMoved(
            f"{lease.name} no longer stops at {expected_end:%Y-%m-%d %H:%M} UTC: it was extended or stopped since.",
            fix="Open the lease and extend it there if it is still too short.",
        )
    longest = settings.MAX_LEASE_HOURS * 3600
    if more_s < 60 or lease.max_duration_s + more_s > longest:
        raise InvalidValue(
            "more_s",
            f"A lease can last at most {settings.MAX_LEASE_HOURS} h in total, and be extended by at least 60 s.",
            fix=f"Extend by at most {max(longest - lease.max_duration_s, 0) // 3600} h.",
        )
    more = timedelta(seconds=more_s)
    if lease.end_date and lease.end_date > now + MAX_END_DATE_AHEAD - more:
        raise InvalidValue("more_s", "The new end date must be within five years.", fix="Choose a shorter extension.")
    before = lease.max_duration_s
    lease.max_duration_s += more_s
    if lease.end_date:
        lease.end_date += more
    lease.requested_with_token = actor.token
    if lease.state != LeaseState.STOPPED:  # a stopped lease passes them when it is started again
        lease_requests.run_gates(lease, now=now)
    if lease.active_at:
        lease.ends_at = end_when_active_from(lease, lease.active_at)
    elif lease.state in (LeaseState.QUEUED, LeaseState.STOPPED):
        lease.due_at = lease.end_date
    lease.version = F("version") + 1
    lease.save(update_fields=["max_duration_s", "end_date", "ends_at", "due_at", "quota_uses", "version"])
    lease.refresh_from_db(fields=["version"])
    audit.record("lease.extend", lease, actor=actor, now=now, before_s=before, after_s=lease.max_duration_s)
    if lease.ends_at:
        # Also at once: its cluster must learn the new deadline before it enforces the old one.
        outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
        enqueue_check_at_end(lease.ends_at, lease, now=now)
    return lease


def end_when_active_from(lease: Lease, active_at: datetime) -> datetime:
    """Return when a lease that becomes active at this time must end.

    That is after what is left of its duration, or at its fixed date if that is earlier.
    """
    left = timedelta(seconds=lease.max_duration_s - lease.active_seconds)
    by_duration = active_at.replace(microsecond=0) + left
    return min(by_duration, lease.end_date) if lease.end_date else by_duration


def enqueue_check_at_end(ends_at: datetime, lease: Lease, *, now: datetime) -> None:
    """Enqueue a check at the second an active lease must end.

    The sweep would come up to 5 s later.
    """
    after_s = max((ends_at - now).total_seconds(), 0)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
