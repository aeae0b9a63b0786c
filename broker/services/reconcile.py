"""Level-triggered: look at one lease, do the next thing it needs, whatever hint led here. Hints may be lost or doubled.

Load under the tenant's wall; act with no transaction open; apply if the row is still as it was loaded.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import F, Q

from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.provisioners.base import Observation, Order, Seen, Unanswered
from broker.services import clusters, outcomes
from broker.services.capacity import pool_of
from broker.services.leases import ending, leaving, placing, serving
from broker.services.leases.orders import order_of
from ports import clock, doorbell
from tenants.services.walls import as_sweep, as_tenant

# A worker that died is replaced after this, at the sweep's next round: nothing under way waits over 15 s. Fencing makes
# expiry safe; and who got to work so late that an answer may outlast the claim leaves it to the next.
CLAIM = timedelta(seconds=9)
LATE = timedelta(seconds=2.5)
DEADLY = 5  # claims in a row that nobody lived to finish: something about the lease kills its workers
BATCH = 500
FIRST_TRY = 2  # a lease that was never placed is of generation 1
SOON_S = 2.0
S = LeaseState
LIVING, GOING = (S.PROVISIONING, S.ACTIVE), (S.STOPPING, S.RELEASING)
AT_WORK = (*LIVING, *GOING)  # something of it is in its cluster
Hint = tuple[str, str, str]  # task, subject, tenant


def step(lease_id: str, tenant_id: str, *, now: datetime) -> None:
    """Do the next thing a lease needs. Safe to call at any time, any number of times, from anywhere."""
    began = clock.now()
    with as_tenant(tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=lease_id).first()
        if lease is None or lease.state == S.RELEASED:
            return
        # What is charged is looked at first, unless looking at it kills.
        if ending.is_over(lease, now) and (lease.state != S.ACTIVE or lease.tries >= DEADLY):
            at = ending.end_of_term(lease) if lease.state != S.ACTIVE else lease.seen_at
            ending.release(lease, reason=EndReason.EXPIRED, now=now, at=at)
            return
        placed = lease.state != S.QUEUED or not serving.is_first(lease) or placing.place(lease, now=now)
        if not placed and lease.state == S.QUEUED:
            return  # in any other state somebody was faster, and left the rest to this hint
        if lease.state == S.PROVISIONING and lease.tries >= DEADLY:
            outcomes.give_up_deadly(lease, now)
            return
        order = _claim(lease, now) if lease.state in AT_WORK else None
    if order is not None:
        _work(lease, order, now, starts_by=began + LATE)
    elif lease.state == S.QUEUED:
        serving.serve(pool_of(lease.offering), now=now, upto=lease_id)
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
                    outcomes.activate(lease, observation, now)
                case S.PROVISIONING, Seen.PENDING:
                    if observation.text != lease.progress.get("text"):  # the next look is the sweep's
                        outcomes.look_again(
                            lease, replace(observation, again_in_s=outcomes.REST.total_seconds()), now
                        )
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
    ).update(claimed_until=now + CLAIM, tries=F("tries") + 1, due_at=now + outcomes.LOOK_AGAIN)
    return order_of(lease) if claimed else None


def _give_back(lease: Lease, now: datetime) -> None:
    Lease.objects.filter(pk=lease.pk, claimed_until=now + CLAIM).update(claimed_until=None, tries=0)


def _work(lease: Lease, order: Order, now: datetime, *, starts_by: datetime) -> None:
    asked, observation, seq = clock.now(), _act(lease, order, now, starts_by), lease.seq
    if observation is None:
        with as_tenant(lease.tenant_id):
            _give_back(lease, now)
            doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
        return
    said = now + (clock.now() - asked)  # a cluster may take its time; what begins then was not there before
    if observation.last_seen is None and (observation.seen is Seen.READY or observation.runs):
        observation = replace(
            observation, last_seen=now
        )  # and what ran when it was asked may have ended since
    with as_tenant(lease.tenant_id):
        try:
            outcomes.apply(lease, observation, said)
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
            _give_back(lease, now)
    if lease.state == S.QUEUED:
        leaving.step(lease.pk, lease.tenant_id, now=now)
    elif outdated:  # it ended, or is placed anew, while we made it
        with suppress(Unanswered):
            clusters.provisioner_of(order).remove(order, now=now)
    elif written and observation.remains and lease.state in LIVING:
        with suppress(Unanswered):  # the next look finds them again
            clusters.provisioner_of(order).let_go(order, observation.remains)


def _act(lease: Lease, order: Order, now: datetime, starts_by: datetime) -> Observation | None:
    """Ask the cluster for what the lease's state wants; no transaction is open. None when it is too late for that."""
    if lease.state == S.PROVISIONING and (earlier := _earlier(lease, order, now, starts_by)):
        return earlier
    if clock.now() > starts_by:
        return None
    provisioner = clusters.provisioner_of(order)
    acts = {S.PROVISIONING: provisioner.ensure, **dict.fromkeys(GOING, provisioner.remove)}
    try:
        return acts.get(S(lease.state), provisioner.observe)(order, now=now)
    except Unanswered as silence:
        text = f"the cluster does not answer: {silence}"
        again_in_s = silence.again_in_s or Observation.again_in_s
        return Observation(Seen.PENDING, text, again_in_s=again_in_s, answered=False)


def _earlier(lease: Lease, order: Order, now: datetime, asks_by: datetime) -> Observation | None:
    """Say that an earlier try may still run, beside which this one must not begin.

    A silent cluster is waited for by what goes on in it, and not elsewhere: it may be silent for ever.
    """
    if lease.generation <= FIRST_TRY:
        return None
    going = leaving.step(lease.pk, lease.tenant_id, now=now, beside=order.cluster, asks_by=asks_by)
    waits = [each for cluster, each in going.items() if each.answered or cluster == order.cluster]
    if not waits:
        return None
    answered = any(each.answered for each in waits)
    again_in_s = SOON_S if answered else max(each.again_in_s for each in waits)
    return Observation(Seen.PENDING, outcomes.STILL_GOING, again_in_s=again_in_s, answered=answered)


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
        leases = list(idle.order_by("due_at", "id").values_list("id", "tenant_id")[:BATCH])
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
