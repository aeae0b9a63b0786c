"""Level-triggered: look at one lease, do the next thing it needs, whatever hint led here. Hints may be lost or doubled.

Load under the tenant's wall; act with no transaction open; apply if the row is still as it was loaded.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q

from broker.domain.states import Condition, EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.provisioners.base import Observation, Order, Seen, Unanswered
from broker.services import clusters
from broker.services.capacity import pool_of
from broker.services.layouts import stepping
from broker.services.leases import ending, growing, leaving, placing, stopping
from broker.services.leases.orders import order_of
from broker.services.volumes import mounting
from ports import clock, doorbell
from tenants.services.walls import as_sweep, as_tenant

CLAIM = timedelta(seconds=20)  # a worker that died is replaced after this; fencing makes expiry safe
LOOK_AGAIN = timedelta(seconds=10)  # and the sweep comes every five: nothing under way waits over 15 s
REST = timedelta(minutes=4)  # how often an active lease is looked at
DEADLY = 5  # claims in a row that nobody lived to finish: something about the lease kills its workers
BATCH = 500
MOST_PLACES = 12  # that a lease is given before somebody should ask what is the matter with it
SOON_S = 1.0
STILL_GOING = "what an earlier place had of it is still ending"
SILENT = timedelta(seconds=45)  # then a lease that never began there tries another cluster
LOST_AFTER = timedelta(seconds=30)  # how long a node may be silent before its leases end
S = LeaseState
LIVING, GOING = (S.PROVISIONING, S.ACTIVE), (S.STOPPING, S.RELEASING)
AT_WORK = (*LIVING, *GOING)  # something of it is in its cluster
Hint = tuple[str, str, str]  # task, subject, tenant


def step(lease_id: str, tenant_id: str, *, now: datetime) -> None:
    """Do the next thing a lease needs. Safe to call at any time, any number of times, from anywhere."""
    with as_tenant(tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=lease_id).first()
        if lease is None or lease.state == S.RELEASED:
            return
        # What is charged is looked at first, unless looking at it kills.
        if ending.is_over(lease, now) and (lease.state != S.ACTIVE or lease.tries >= DEADLY):
            at = ending.end_of_term(lease) if lease.state != S.ACTIVE else lease.seen_at
            ending.release(lease, reason=EndReason.EXPIRED, now=now, at=at)
            return
        placed = lease.state != S.QUEUED or not placing.is_first(lease) or placing.place(lease, now=now)
        if not placed and lease.state == S.QUEUED:
            return  # in any other state somebody was faster, and left the rest to this hint
        if lease.state == S.PROVISIONING and lease.tries >= DEADLY:
            _give_up(lease, f"{lease.tries} workers in a row died on it", now)
            return
        order = _claim(lease, now) if lease.state in AT_WORK else None
    if order is not None:
        _work(lease, order, now)
    elif lease.state == S.QUEUED:
        placing.serve(pool_of(lease.offering), now=now, upto=lease_id)
        with as_tenant(tenant_id):
            placed = Lease.objects.filter(pk=lease_id, state=S.PROVISIONING, claimed_until=None).exists()
        if placed:
            step(lease_id, tenant_id, now=now)


def told(lease_id: str, tenant_id: str, generation: int, observation: Observation, *, now: datetime) -> bool:
    """Write down what a cluster's agent saw of a lease that is well; False where a worker has to look."""
    try:
        with as_tenant(tenant_id):
            standing = Lease.objects.select_related("offering").filter(pk=lease_id, generation=generation)
            lease = standing.first()
            if lease is None or ending.is_over(lease, now):
                return False
            match S(lease.state), observation.seen:
                case S.PROVISIONING, Seen.READY:
                    _activate(lease, observation, now)
                case S.PROVISIONING, Seen.PENDING:
                    if observation.text != lease.progress.get("text"):  # the next look is the sweep's
                        _look_again(lease, replace(observation, again_in_s=REST.total_seconds()), now)
                case _:
                    return False
    except StaleLease:
        return False
    return True


def _claim(lease: Lease, now: datetime) -> Order | None:
    """Take the lease for ourselves for a while; None when another worker has it.

    The claim is committed before the work, so that a worker killed by the work is counted.
    """
    claimed = Lease.objects.filter(
        Q(claimed_until=None) | Q(claimed_until__lt=now), pk=lease.pk, state=lease.state, seq=lease.seq
    ).update(claimed_until=now + CLAIM, tries=F("tries") + 1, due_at=now + LOOK_AGAIN)
    return order_of(lease) if claimed else None


def _work(lease: Lease, order: Order, now: datetime) -> None:
    asked, observation, seq = clock.now(), _act(lease, order, now), lease.seq
    said = now + (clock.now() - asked)  # a cluster may take its time; what begins then was not there before
    with as_tenant(lease.tenant_id):
        try:
            _apply(lease, observation, said)
            outdated, written = False, True
        except StaleLease:
            written = False
            standing = Lease.objects.holding().filter(pk=lease.pk, generation=order.generation)
            outdated = (state := standing.values_list("state", flat=True).first()) is None
            # Somebody moved it while we worked, and our claim kept their hint's worker out: pass it on.
            # Not so when its agent was faster and has made it active, as we would have.
            if (lease.state, state) != (S.PROVISIONING, S.ACTIVE):
                doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)
        if lease.seq == seq or lease.state in GOING:  # the other steps give the claim back themselves
            Lease.objects.filter(pk=lease.pk, claimed_until=now + CLAIM).update(claimed_until=None, tries=0)
    if lease.state == S.QUEUED:
        leaving.step(lease.pk, lease.tenant_id, now=now)
    elif outdated:  # it ended, or is placed anew, while we made it
        with suppress(Unanswered):
            clusters.provisioner_of(order).remove(order, now=now)
    elif written and observation.remains and lease.state in LIVING:
        with suppress(Unanswered):  # the next look finds them again
            clusters.provisioner_of(order).let_go(order, observation.remains)


def _act(lease: Lease, order: Order, now: datetime) -> Observation:
    """Ask the cluster for what the lease's state wants; no transaction is open."""
    if lease.state == S.PROVISIONING and (earlier := _earlier(lease, order, now)):
        return earlier
    provisioner = clusters.provisioner_of(order)
    acts = {S.PROVISIONING: provisioner.ensure, **dict.fromkeys(GOING, provisioner.remove)}
    try:
        return acts.get(S(lease.state), provisioner.observe)(order, now=now)
    except Unanswered as silence:
        text = f"the cluster does not answer: {silence}"
        again_in_s = silence.again_in_s or Observation.again_in_s
        return Observation(Seen.PENDING, text, again_in_s=again_in_s, answered=False)


def _earlier(lease: Lease, order: Order, now: datetime) -> Observation | None:
    """Say that an earlier try may still run, beside which this one must not begin.

    A silent cluster is waited for by what goes on in it, and not elsewhere: it may be silent for ever.
    """
    if lease.generation == 1:
        return None
    going = leaving.step(lease.pk, lease.tenant_id, now=now)
    if not (any(going.values()) or order.cluster in going):
        return None
    return Observation(Seen.PENDING, STILL_GOING, again_in_s=SOON_S, answered=any(going.values()))


def _apply(lease: Lease, observation: Observation, now: datetime) -> None:
    match S(lease.state), observation.seen:
        case S.PROVISIONING, Seen.READY:
            _activate(lease, observation, now)
        case S.PROVISIONING, Seen.REFUSED:
            ending.release(lease, reason=EndReason.SPEC_REFUSED, now=now, cause=observation.text)
        case S.PROVISIONING, Seen.LOST:
            _requeue(lease, observation, now)
        case S.PROVISIONING, _ if _never_answered(lease, observation, now):
            _requeue(lease, observation, now)
        case S.ACTIVE, Seen.ENDED if ending.is_over(lease, observation.last_seen or now):
            _expire(lease, observation, now)  # it was ended, by its deadline
        case S.PROVISIONING | S.ACTIVE, Seen.ENDED:
            ending.release(
                lease, reason=EndReason.BY_TENANT, now=now, at=observation.last_seen, cause=observation.text
            )
        case S.PROVISIONING, _ if now - lease.at > timedelta(seconds=settings.PROVISION_TIMEOUT_S):
            _give_up(lease, f"not ready within {settings.PROVISION_TIMEOUT_S} s: {observation.text}", now)
        case S.RELEASING, Seen.GONE:
            ending.finish(lease, now=now)
        case S.STOPPING, Seen.GONE:  # and nothing else: what is not proven gone may still write to its volume
            stopping.rest(lease, now=now)
        case S.RELEASING, Seen.LOST if lease.volume_id is None and now - lease.at > LOST_AFTER:
            ending.finish(lease, now=now)
        case S.ACTIVE, Seen.PENDING if not ending.is_over(lease, now - LOST_AFTER):
            _unproven(lease, observation, now)
        case S.ACTIVE, _ if ending.is_over(lease, now):
            _expire(lease, observation, now)
        case S.ACTIVE, Seen.READY:
            _recovered(lease, observation, now)
        case S.ACTIVE, Seen.LOST:
            _lost(lease, observation, now)
        case S.ACTIVE, Seen.GONE | Seen.REFUSED:
            cause = observation.text or "its pod is gone"
            since = observation.last_seen or lease.seen_at
            ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)
        case _:
            _look_again(lease, observation, now)


def _never_answered(lease: Lease, observation: Observation, now: datetime) -> bool:
    """Tell whether a lease's cluster has been silent about it for too long, from the first moment on.

    One that was heard of may run any moment, and is waited for: it must not run twice.
    """
    return not observation.answered and not _heard(lease) and now - lease.at > SILENT


def _heard(lease: Lease) -> bool:
    """Tell whether its cluster ever said anything of a lease that is being made."""
    return bool(lease.progress) and bool(lease.progress.get("answered", True))


def _give_up(lease: Lease, cause: str, now: datetime) -> None:
    ending.release(lease, reason=EndReason.PROVISION_TIMEOUT, now=now, cause=cause)


def _activate(lease: Lease, observation: Observation, now: datetime) -> None:
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
    growing.ring_at(ends_at, lease, now=now)


def _requeue(lease: Lease, observation: Observation, now: datetime) -> None:
    """Place it anew: it was never active, so nothing was charged. Its old place stays taken until proven empty."""
    if (places := leaving.places_left(lease)) >= MOST_PLACES:
        _give_up(lease, f"{places} places did not take it, the last: {observation.text}", now)
        return
    lease.move(
        S.QUEUED,
        now=now,
        cause=observation.text,
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
    if observation.seen == Seen.PENDING:
        ending.release(lease, reason=EndReason.EXPIRED, now=now, at=since)
        return
    if observation.seen == Seen.READY and lease.conditions:  # it was there all along
        _recovered(lease, observation, now)
        lease.conditions = {}
    if observation.seen in (Seen.LOST, Seen.GONE, Seen.REFUSED) and since < (lease.ends_at or now):
        cause = observation.text or "its pod is gone"
        ending.release(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)
    else:
        ending.release(lease, reason=EndReason.EXPIRED, now=now, at=lease.ends_at)


def _unproven(lease: Lease, observation: Observation, now: datetime) -> None:
    """Ask again soon; a silence that outlasts the usual look is told, and what ends in it ends where it began."""
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
        _look_again(lease, observation, now)


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
    if lease.conditions:
        changes["conditions"] = {}
    _note(lease, **changes)


def _look_again(lease: Lease, observation: Observation, now: datetime) -> None:
    changes: dict[str, object] = {"due_at": now + LOOK_AGAIN}
    progress: dict[str, object] = {}
    if observation.text:
        progress = {"text": observation.text, "percent": observation.percent}
    if not observation.answered and not _heard(lease):
        progress["answered"] = False
    if progress != lease.progress:
        changes["progress"] = progress
    _note(lease, **changes)
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


def look_at_active(*, now: datetime) -> None:
    """Look at every active lease at once: for histories, in which no worker does."""
    with as_sweep():
        active = list(Lease.objects.filter(state=S.ACTIVE).order_by("id").values_list("id", "tenant_id"))
    for lease_id, tenant_id in active:
        step(lease_id, tenant_id, now=now)


def due(*, now: datetime) -> list[Hint]:
    """Return what somebody should look at now: leases whose moment has come, and pools with a queue."""
    with as_sweep():
        idle = Lease.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), due_at__lte=now)
        leases = list(idle.order_by("due_at").values_list("id", "tenant_id")[:BATCH])
        return [_to_step(*lease) for lease in leases] + leaving.due() + _queues()


def all_live() -> list[Hint]:
    """Return a look at every lease that is not over."""
    with as_sweep():
        live = Lease.objects.live().exclude(state=S.QUEUED).order_by("id").values_list("id", "tenant_id")
        return [_to_step(*lease) for lease in live] + _queues()


def _to_step(lease_id: str, tenant_id: str) -> Hint:
    return "broker.step", lease_id, tenant_id


def _queues() -> list[Hint]:
    """Return a look at every pool in which somebody waits."""
    pools = Lease.objects.filter(state=S.QUEUED).values_list("offering__gpu_model", "offering__region")
    return [("broker.serve", f"{model}|{region}", "") for model, region in pools.distinct().order_by()]
