"""Node outages that leases outlast, uncharged."""

from datetime import datetime

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import extension
from ports import outbox

OUTAGE_TEXT = "its node sent no heartbeats; nothing is charged until it runs again"
RETURN_TEXT = "its node is back and it runs again; the outage is not charged"


def record_outage(lease: Lease, *, now: datetime) -> None:
    """Record that an active lease did not run from its last proof until now.

    Its duration is extended by the outage; a fixed end date stays.
    """
    until = max((lease.seen_at or lease.state_since).replace(microsecond=0), lease.state_since)
    since = (lease.active_at or until).replace(microsecond=0)
    back = max(now.replace(microsecond=0), until)
    lease.transition(
        LeaseState.PROVISIONING,
        now=until,
        cause=OUTAGE_TEXT,
        active_seconds=lease.active_seconds + int((until - since).total_seconds()),
        active_at=None,
        ends_at=None,
    )
    ends_at = extension.end_when_active_from(lease, back)
    lease.transition(
        LeaseState.ACTIVE,
        now=back,
        cause=RETURN_TEXT,
        active_at=back,
        seen_at=back,
        ends_at=ends_at,
        claimed_until=None,
        unfinished_claims=0,
    )
    extension.enqueue_check_at_end(ends_at, lease, now=now)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)  # tells its cluster the end
    if lease.run_ends_at:
        extension.enqueue_check_at_end(lease.run_ends_at, lease, now=now)
