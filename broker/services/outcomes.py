"""What a lease becomes by what its cluster said of it: pure steps of the books, in its tenant's transaction.

Whoever calls them asked the cluster before, and is told by StaleLease that the row is no longer as it was loaded.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F

from broker.domain.states import Condition, EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.provisioners.base import Observation, Seen
from broker.services import vanishing
from broker.services.layouts import stepping
from broker.services.leases import ending, growing, leaving, placing, stopping
from broker.services.moving import crossing
from broker.services.volumes import mounting
from ports import doorbell

LOOK_AGAIN = timedelta(seconds=10)  # and the sweep comes every five: nothing under way waits over 15 s
REST = timedelta(minutes=4)  # how often an active lease is looked at
ILL_REST = timedelta(minutes=1)  # and one whose program is not ready
MOST_PLACES = 12  # that a lease is given before somebody should ask what is the matter with it
SILENT = timedelta(seconds=45)  # then a lease that never began there tries another cluster
LOST_AFTER = timedelta(seconds=30)  # how long a node may be silent before its leases end
STILL_GOING = "what an earlier place had of it is still ending"
S = LeaseState


def apply(lease: Lease, observation: Observation, now: datetime) -> None:
    if lease.state == S.ACTIVE:
        _believe_no_longer(lease, observation)
        if observation.seen in (Seen.ENDED, Seen.LOST) or _waits_for_another(observation):
            _believe_until_its_end(lease, observation, now)
    match S(lease.state), observation.seen:
        case S.PROVISIONING, Seen.READY:
            activate(lease, observation, now)
        case S.PROVISIONING, seen if _will_not(lease, seen, observation, now) and crossing.go_back(
            lease, why=observation.text or "not ready in time", now=now
        ):
            pass
        case S.PROVISIONING, Seen.REFUSED:
            if not _goes_on(lease, observation.text, now):
                ending.release(lease, reason=EndReason.SPEC_REFUSED, now=now, cause=observation.text)
        case S.PROVISIONING, Seen.LOST:
            _requeue(lease, observation.text, now)
        case S.PROVISIONING, _ if _never_answered(lease, observation, now):
            _requeue(lease, observation.text, now)
        case S.ACTIVE, Seen.ENDED if ending.is_over(lease, observation.last_seen or now):
            _expire(lease, observation, now)  # it was ended, by its deadline
        case S.PROVISIONING | S.ACTIVE, Seen.ENDED:
            ending.release(
                lease, reason=EndReason.BY_TENANT, now=now, at=observation.last_seen, cause=observation.text
            )
        case S.PROVISIONING, _ if _takes_too_long(lease, now):
            cause = f"not ready within {settings.PROVISION_TIMEOUT_S} s: {observation.text}"
            # What a silent cluster has begun of it may run yet.
            if not observation.answered or not _goes_on(lease, cause, now):
                give_up(lease, cause, now)
        case S.RELEASING, Seen.GONE:
            ending.finish(lease, now=now)
        case S.STOPPING, Seen.GONE:  # and nothing else: what is not proven gone may still write to its volume
            if not crossing.cross(lease, now=now):
                stopping.rest(lease, now=now)
        case S.STOPPING, Seen.LOST if lease.volume_id is None and now - lease.at > LOST_AFTER:
            if not crossing.cross_unproven(lease, now=now):
                look_again(lease, observation, now)
        case S.RELEASING, Seen.LOST if lease.volume_id is None and now - lease.at > LOST_AFTER:
            ending.finish(lease, now=now)
        case S.ACTIVE, Seen.PENDING if observation.runs and not ending.is_over(lease, now):
            _ill(lease, observation, now)
        case S.ACTIVE, Seen.PENDING if not observation.runs and not ending.is_over(lease, now - LOST_AFTER):
            _unproven(lease, observation, now)
        case S.ACTIVE, _ if ending.is_over(lease, now):
            _expire(lease, observation, now)
        case S.ACTIVE, Seen.READY:
            _recovered(lease, observation, now)
        case S.ACTIVE, Seen.LOST:
            _lost(lease, observation, now)
        case S.ACTIVE, Seen.GONE if vanishing.is_doubted(lease, now=now):
            pass  # one look may be mistaken
        case S.ACTIVE, Seen.GONE | Seen.REFUSED:
            _believe_until_its_end(lease, observation, now)  # not before it was looked for twice
            cause = observation.text or "its pod is gone"
            since = observation.last_seen or lease.seen_at
            ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)
        case _:
            look_again(lease, observation, now)


def _believe_no_longer(lease: Lease, observation: Observation) -> None:
    """Take back what was believed of its life beyond its end, now that its cluster knows that.

    Who looked between an end and the moment at which the cluster told it took what ran before for a proof.
    """
    until = observation.proven_until or (observation.last_seen if observation.seen is Seen.LOST else None)
    if until is None or lease.seen_at is None or lease.seen_at <= until or stepping.blinds(lease):
        return
    lease.seen_at = max(until, lease.at)
    _note(lease, seen_at=lease.seen_at)


def _believe_until_its_end(lease: Lease, observation: Observation, now: datetime) -> None:
    """Take the end that its cluster tells of for a proof that it ran until then.

    Its cluster may be called silent until somebody knocks again, though it answers by now.
    """
    until = min(observation.last_seen or lease.at, now)
    if until > (lease.seen_at or lease.at):
        lease.seen_at = until
        _note(lease, seen_at=until)


def _waits_for_another(observation: Observation) -> bool:
    """Tell whether what ran has ended, and what is made in its place does not run yet."""
    return observation.seen is Seen.PENDING and not observation.runs


def _will_not(lease: Lease, seen: Seen, observation: Observation, now: datetime) -> bool:
    """Tell whether a lease that is being made will not come to be where it was placed."""
    if seen in (Seen.REFUSED, Seen.LOST) or _never_answered(lease, observation, now):
        return True
    return seen in (Seen.PENDING, Seen.GONE) and _takes_too_long(lease, now)


def _takes_too_long(lease: Lease, now: datetime) -> bool:
    return now - lease.at > timedelta(seconds=settings.PROVISION_TIMEOUT_S)


def _never_answered(lease: Lease, observation: Observation, now: datetime) -> bool:
    """Tell whether a lease's cluster has been silent about it for too long, from the first moment on.

    One that was heard of may run any moment, and is waited for: it must not run twice.
    """
    return not observation.answered and not _heard(lease) and now - lease.at > SILENT


def _heard(lease: Lease) -> bool:
    """Tell whether its cluster ever said anything of a lease that is being made; an earlier place's word is no such."""
    told = lease.progress.get("answered", True) and lease.progress.get("text") != STILL_GOING
    return bool(lease.progress and told)


def give_up(lease: Lease, cause: str, now: datetime) -> None:
    ending.release(lease, reason=EndReason.PROVISION_TIMEOUT, now=now, cause=cause)


def give_up_deadly(lease: Lease, now: datetime) -> None:
    """End a lease that kills whoever works on it; one that is moved goes back to where it killed nobody."""
    cause = f"{lease.tries} workers in a row died on it"
    if not crossing.go_back(lease, why=cause, now=now):
        give_up(lease, cause, now)


def activate(lease: Lease, observation: Observation, now: datetime) -> None:
    at = max(now.replace(microsecond=0), lease.at)  # as the ledger will have it
    ends_at = growing.end_of(lease, at)
    lease.move(
        S.ACTIVE,
        now=now,
        cause=observation.text,
        active_at=at,
        seen_at=now,
        ends_at=ends_at,
        claimed_until=None,
        due_at=min(ends_at, now + REST),
        progress={},
        tries=0,
    )
    mounting.in_use(lease, now=now)
    crossing.land(lease, now=now)
    growing.ring_at(ends_at, lease, now=now)


def _goes_on(lease: Lease, cause: str, now: datetime) -> bool:
    """Let another cluster try what this one could not start; False where none is left that has room for it."""
    if not placing.has_another_cluster(lease):
        return False
    _requeue(lease, cause, now)
    return True


def _requeue(lease: Lease, cause: str, now: datetime) -> None:
    """Place it anew: it was never active, so nothing was charged. Its old place stays taken until proven empty."""
    if (places := leaving.places_left(lease)) >= MOST_PLACES:
        give_up(lease, f"{places} places did not take it, the last: {cause}", now)
        return
    lease.move(
        S.QUEUED,
        now=now,
        cause=cause,
        claimed_until=None,
        due_at=lease.end_date,
        progress={},
        tries=0,
    )
    leaving.leave(lease, now=now)
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)


def _expire(lease: Lease, observation: Observation, now: datetime) -> None:
    """End a lease whose time is up; one that was lost before that ends with its last proof of life.

    A silent cluster halts no end: its lease is charged to its last proof of life, and keeps its places until
    the cluster can prove that it is gone.
    """
    since = observation.last_seen or lease.seen_at or now
    if observation.seen == Seen.PENDING and not observation.runs:
        ending.release(lease, reason=EndReason.EXPIRED, now=now, at=since)
        return
    if observation.seen in (Seen.READY, Seen.PENDING) and lease.conditions:  # it was there all along
        _recovered(lease, observation, now)
        lease.conditions = {}
    if observation.seen in (Seen.LOST, Seen.GONE, Seen.REFUSED) and since < (lease.ends_at or now):
        _believe_until_its_end(lease, observation, now)
        cause = observation.text or "its pod is gone"
        ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)
    else:
        ending.release(lease, reason=EndReason.EXPIRED, now=now, at=lease.ends_at)


def _ill(lease: Lease, observation: Observation, now: datetime) -> None:
    """Say that its program is not ready. It holds its card all the same, and that is charged."""
    seen_at = max(observation.last_seen or now, lease.seen_at or lease.at)
    ill = {str(Condition.DEGRADED): observation.text}
    changes: dict[str, object] = {
        "due_at": min(lease.ends_at or now + ILL_REST, now + ILL_REST),
        "seen_at": seen_at,
    }
    if lease.conditions != ill:
        changes["conditions"] = ill
    # What nobody saw is no proof that nothing ran: it is ill anew, and older releases noted no moment.
    if lease.ill_since is None or set(lease.conditions) != {str(Condition.DEGRADED)}:
        changes["ill_since"] = now
    _note(lease, **changes)
    _look_soon(lease, observation, now)


def _unproven(lease: Lease, observation: Observation, now: datetime) -> None:
    """Ask again soon; a silence that outlasts the usual look is told, and what ends in it ends where it began.

    Where its cluster says that nothing of it runs, it is as lost as on a silent node.
    """
    if observation.last_seen:
        last_seen = max(observation.last_seen, lease.seen_at or lease.at)
        _lost(lease, replace(observation, last_seen=last_seen), now)
        return
    if (
        observation.answered
        and Condition.UNREACHABLE in lease.conditions
        and lease.seen_at
        and now - lease.seen_at > LOST_AFTER
    ):
        cause = f"nothing of it ran any longer: {observation.text}"
        ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=lease.seen_at, cause=cause)
        return
    if (
        lease.seen_at
        and now - lease.seen_at > REST + LOST_AFTER
        and Condition.UNREACHABLE not in lease.conditions
    ):
        sentence = f"{observation.text}; last seen at {lease.seen_at:%H:%M:%S} UTC"
        _note(
            lease,
            conditions={**lease.conditions, str(Condition.UNREACHABLE): sentence},
            due_at=now + LOOK_AGAIN,
        )
    else:
        look_again(lease, observation, now)


def _lost(lease: Lease, observation: Observation, now: datetime) -> None:
    if stepping.blinds(lease):  # its cards are nowhere to be seen, and that is no loss
        cut = {str(Condition.REPARTITIONING): "Its node is being cut anew and reports no cards meanwhile."}
        seen = {} if cut.items() <= lease.conditions.items() else {"conditions": {**lease.conditions, **cut}}
        _note(lease, due_at=now + LOOK_AGAIN, **seen)
        return
    since = observation.last_seen or lease.seen_at or now
    if now - since > LOST_AFTER:
        ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=observation.text)
        return
    changes: dict[str, object] = {"due_at": now + LOOK_AGAIN}
    if lease.seen_at is None or lease.seen_at < since:
        changes["seen_at"] = since
    if Condition.UNREACHABLE not in lease.conditions:
        sentence = f"{observation.text} at {since:%H:%M:%S} UTC"
        changes["conditions"] = {**lease.conditions, str(Condition.UNREACHABLE): sentence}
    _note(lease, **changes)


def _recovered(lease: Lease, observation: Observation, now: datetime) -> None:
    seen_at = max(observation.last_seen or now, lease.seen_at or lease.at)
    changes: dict[str, object] = {"due_at": min(lease.ends_at or now + REST, now + REST), "seen_at": seen_at}
    for told in ("conditions", "progress"):
        if getattr(lease, told):
            changes[told] = {}
    if lease.ill_since is not None:
        changes["ill_since"] = None
    _note(lease, **changes)


def look_again(lease: Lease, observation: Observation, now: datetime) -> None:
    changes: dict[str, object] = {"due_at": now + LOOK_AGAIN}
    progress: dict[str, object] = {}
    if observation.text:
        progress = {"text": observation.text, "percent": observation.percent}
    if not observation.answered and not _heard(lease):
        progress["answered"] = False
    if progress != lease.progress:
        changes["progress"] = progress
    _note(lease, **changes)
    _look_soon(lease, observation, now)


def _look_soon(lease: Lease, observation: Observation, now: datetime) -> None:
    if observation.again_in_s < LOOK_AGAIN.total_seconds():
        doorbell.ring(
            "broker.step", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=observation.again_in_s
        )


def _note(lease: Lease, **changes: object) -> None:
    """Write what was seen, if the row is still as it was loaded; what a tenant can see raises its version."""
    if changes.keys() & {"conditions", "progress"}:
        changes["version"] = F("version") + 1
    if not Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq).update(**changes):
        raise StaleLease(lease.pk)
