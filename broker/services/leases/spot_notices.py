"""Notices to spot leases: given, withdrawn, and settled when the lease ends.

All run inside the transaction of the lease's tenant.
"""

from datetime import datetime, timedelta

from broker.domain.lifecycle.spot_terms import RECLAIMING_CLASSES, ReclaimNoticeState
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.models import Lease, ReclaimNotice, SpotReclaim, StaleLease
from broker.services.leases import spot_emails
from ports import outbox

N = ReclaimNoticeState


def give_notice(lease_id: str, reclaim: SpotReclaim, *, now: datetime) -> None:
    """Give an active spot lease notice; raise StaleLease if it changed since it was chosen."""
    lease = _lock_lease(lease_id)
    if lease.state != LeaseState.ACTIVE or lease.reclaim_at or lease.active_at is None:
        raise StaleLease(lease.pk)
    if not lease.spot_terms.may_get_notice(lease.active_at, now):
        raise StaleLease(lease.pk)
    notice = ReclaimNotice.objects.create(
        tenant_id=lease.tenant_id,
        reclaim=reclaim,
        lease=lease,
        noticed_at=reclaim.noticed_at,
        reclaim_at=reclaim.reclaim_at,
        state_at=now,
    )
    after = "; it is then queued again" if lease.requeue_when_preempted else ""
    given, at = (f"{moment:%H:%M:%S} UTC" for moment in (reclaim.noticed_at, reclaim.reclaim_at))
    cause = f"notice given at {given}: reclaimed for on-demand use at {at}{after}"
    # In the ledger, which every event comes from. Not later than its last observation: what comes after that is not
    # certain to be charged.
    lease.transition(
        LeaseState.ACTIVE,
        now=lease.seen_at or lease.state_since,
        cause=cause,
        reclaim_at=reclaim.reclaim_at,
        due_at=min(filter(None, (lease.due_at, reclaim.reclaim_at))),
    )
    spot_emails.send_notice_email(lease, now=now)
    after_s = (reclaim.reclaim_at - now) / timedelta(seconds=1)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
    if lease.checkpoint_command:
        outbox.enqueue("broker.run_checkpoint", notice.pk, tenant_id=lease.tenant_id, now=now)


def open_notice(lease: Lease) -> ReclaimNotice | None:
    """Return the notice that a lease has now; no query for a lease without one."""
    if lease.reclaim_at is None:
        return None
    return ReclaimNotice.objects.filter(lease=lease, state=N.GIVEN.value).first()


def withdraw_notice(notice: ReclaimNotice, *, why: str, now: datetime) -> None:
    """Withdraw the notice of a lease that still runs, or record that it ended before."""
    lease = _lock_lease(notice.lease_id)
    if lease.state != LeaseState.ACTIVE or lease.reclaim_at != notice.reclaim_at:
        settle_notice(lease, N.ENDED_EARLY, now=now)
        return
    lease.transition(
        LeaseState.ACTIVE,
        now=lease.seen_at or lease.state_since,
        cause=f"notice withdrawn, it keeps running: {why}",
        reclaim_at=None,
    )
    settle_notice(lease, N.WITHDRAWN, now=now)
    spot_emails.send_withdrawal_email(lease)


def settle_notice(lease: Lease, state: ReclaimNoticeState, *, now: datetime) -> None:
    """Record what became of the open notice of a lease, if it has one."""
    ReclaimNotice.objects.filter(lease=lease, state=N.GIVEN.value).update(state=state.value, state_at=now)


def enqueue_check_of_waiting(lease: Lease, *, now: datetime) -> None:
    """Enqueue a check of the notices given for a lease that no longer waits."""
    if PriceClass(lease.offering.price_class) not in RECLAIMING_CLASSES:
        return
    for reclaim_id in SpotReclaim.objects.open().filter(waiting_lease=lease.pk).values_list("pk", flat=True):
        outbox.enqueue("broker.reconcile_spot_reclaim", reclaim_id, now=now)


def _lock_lease(lease_id: str) -> Lease:
    rows = Lease.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("offering", "project", "volume").get(pk=lease_id)
