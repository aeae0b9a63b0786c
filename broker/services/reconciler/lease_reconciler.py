"""Reconciler of leases: checks one lease and performs the next step it needs.

Level-triggered: the messages that start it may be lost or doubled. Loads the lease in its tenant's
row-level security scope, acts with no transaction open, and applies the result if the row is unchanged.
"""

import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import F, Q

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.lifecycle.states import LeaseState
from broker.domain.logs.secret_masks import excerpt_masker, secret_values
from broker.models import Lease, LeaseLog, StaleLease
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState, ProvisionSpec
from broker.services.inventory import cluster_provisioners
from broker.services.inventory.device_losses import MARKED_AFTER
from broker.services.leases import abandoned_placements
from broker.services.leases.lifecycle import preemption, termination
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.logs import log_collection, log_storage
from broker.services.placement.available_capacity import pool_of
from broker.services.queue import lease_placement, queue_scheduling, spot_reclaims
from broker.services.reconciler import observation_outcomes
from broker.services.reconciler.observation_kinds import EARLIER_ATTEMPT_TEXT
from ports import clock, outbox
from tenants.services.rls import system_scope, tenant_scope

# A worker that died is replaced after this, at the next sweep: nothing under way waits over 15 s. Fencing makes
# expiry safe; a worker that starts so late that the answer may outlast the claim leaves it to the next.
CLAIM_TIME = timedelta(seconds=9)
LATEST_START = timedelta(seconds=2.5)
MAX_UNFINISHED_CLAIMS = 5  # consecutive claims whose workers died: something about the lease crashes them
LOG_DELAY = timedelta(seconds=30)  # for so long after its end a lease is not removed before its output is read
BATCH = 500
FIRST_PLACED_GENERATION = 2  # a lease that was never placed is of generation 1
SOON_S = 2.0
DOUBT_CHECK_S = 60.0
# What CUDA and NVML say where a device is gone; errors of a program itself are left out.
GPU_ERROR = re.compile(
    r"no CUDA-capable device|CUDA_ERROR_(NO_DEVICE|ECC_UNCORRECTABLE)|uncorrectable ECC error|GPU is lost"
    r"|fallen off the bus|Unable to determine the device handle|cudaErrorDevicesUnavailable|NVRM: Xid",
    re.IGNORECASE,
)
S = LeaseState
RUNNING_STATES, ENDING_STATES = (S.PROVISIONING, S.ACTIVE), (S.STOPPING, S.RELEASING)
STATES_IN_CLUSTER = (*RUNNING_STATES, *ENDING_STATES)  # some of it is in its cluster


def reconcile_lease(lease_id: str, tenant_id: str, *, now: datetime) -> None:
    """Perform the next step of a lease. Idempotent; may be called at any time."""
    began = clock.now()
    with tenant_scope(tenant_id):
        lease = Lease.objects.select_related("offering").filter(pk=lease_id).first()
        if lease is None or lease.state == S.RELEASED:
            return
        # An active (charged) lease is observed before it is ended, unless observing it crashed too many workers.
        if termination.is_over(lease, now) and (
            lease.state != S.ACTIVE or lease.unfinished_claims >= MAX_UNFINISHED_CLAIMS
        ):
            at = termination.end_of_term(lease) if lease.state != S.ACTIVE else lease.seen_at
            preemption.end_at_term(lease, now=now, at=at)
            return
        if lease.state == S.STOPPED:
            preemption.start_preempted_lease(lease, now=now)
            return
        if lease.is_scheduled(now):
            return  # from its start on the sweep runs its queue
        placed = (
            lease.state != S.QUEUED
            or not queue_scheduling.is_first_in_queue(lease)
            or lease_placement.place_lease(lease, now=now)
        )
        waits = not placed and lease.state == S.QUEUED  # in any other state another worker was faster
        if not waits and lease.state == S.PROVISIONING and lease.unfinished_claims >= MAX_UNFINISHED_CLAIMS:
            observation_outcomes.give_up_crashing(lease, now)
            return
        spec = _claim(lease, now) if lease.state in STATES_IN_CLUSTER else None
        log = (
            LeaseLog.objects.filter(pk=lease.pk).first() if spec is not None and _ends_with_output(lease, now) else None
        )
        if spec is not None and spec.secret_fault and lease.state == S.PROVISIONING:
            _clear_claim(lease, now)
            observation_outcomes.give_up_without_secrets(lease, spec.secret_fault, now)
            return
    if waits:
        spot_reclaims.give_notice_for(lease, now=now)
    elif spec is not None:
        _act_and_apply(lease, spec, log, now, starts_by=began + LATEST_START)
    elif lease.state == S.QUEUED:
        queue_scheduling.run_queue(pool_of(lease.offering), now=now, upto=lease_id)
        with tenant_scope(tenant_id):
            placed = Lease.objects.filter(pk=lease_id, state=S.PROVISIONING, claimed_until=None).exists()
        if placed:
            reconcile_lease(lease_id, tenant_id, now=now)


def apply_agent_observation(
    lease_id: str, tenant_id: str, generation: int, observation: Observation, *, now: datetime
) -> bool:
    """Apply an agent's observation of a healthy lease; return False if a worker must check."""
    try:
        with tenant_scope(tenant_id):
            unchanged = Lease.objects.select_related("offering").filter(pk=lease_id, generation=generation)
            lease = unchanged.first()
            if lease is None or termination.is_over(lease, now):
                return False
            match S(lease.state), observation.seen:
                case S.PROVISIONING, ObservedState.READY:
                    observation_outcomes.activate_lease(lease, observation, now)
                case S.PROVISIONING, ObservedState.PENDING:
                    if observation.text != lease.progress.get("text"):  # the next check is the sweep's
                        observation_outcomes.schedule_check(
                            lease,
                            replace(observation, again_in_s=observation_outcomes.ACTIVE_CHECK_INTERVAL.total_seconds()),
                            now,
                        )
                case _:
                    return False
    except StaleLease:
        return False
    return True


def refuse_placement(lease_id: str, tenant_id: str, generation: int, *, why: str, now: datetime) -> None:
    """Place a lease elsewhere that has not begun, as if its cluster had refused it."""
    with suppress(StaleLease), tenant_scope(tenant_id):
        unchanged = Lease.objects.filter(pk=lease_id, generation=generation, state=S.PROVISIONING)
        lease = unchanged.select_related("offering").first()
        if lease and not termination.is_over(lease, now):
            observation_outcomes.apply_observation(lease, Observation(ObservedState.LOST, why), now)


def _claim(lease: Lease, now: datetime) -> ProvisionSpec | None:
    """Claim the lease for a while; return None if another worker has it.

    The claim is committed before the work, so that a worker killed by the work is counted.
    """
    claimed = Lease.objects.filter(
        Q(claimed_until=None) | Q(claimed_until__lt=now), pk=lease.pk, state=lease.state, seq=lease.seq
    ).update(
        claimed_until=now + CLAIM_TIME,
        unfinished_claims=F("unfinished_claims") + 1,
        due_at=now + observation_outcomes.RECHECK_AFTER,
    )
    if claimed and lease.state == S.PROVISIONING and not lease.progress:
        log_storage.begin_log(lease, now=now)
    with_secrets = lease.state in RUNNING_STATES or _ends_with_output(lease, now)  # what it has written is masked
    return load_provision_spec(lease, with_secrets=with_secrets) if claimed else None


def _clear_claim(lease: Lease, now: datetime) -> None:
    Lease.objects.filter(pk=lease.pk, claimed_until=now + CLAIM_TIME).update(claimed_until=None, unfinished_claims=0)


def _ends_with_output(lease: Lease, now: datetime) -> bool:
    """Return whether a lease is about to be removed with its last output.

    A slow cluster delays the removal by little.
    """
    return lease.state in ENDING_STATES and not lease.progress and now - lease.state_since < LOG_DELAY


def _load_log(lease: Lease) -> LeaseLog | None:
    statement = "SELECT * FROM broker_leaselog WHERE lease_id = %s"  # read at every end: not through the ORM
    return next(iter(LeaseLog.objects.raw(statement, [lease.pk])), None)


def _act_and_apply(
    lease: Lease, spec: ProvisionSpec, log: LeaseLog | None, now: datetime, *, starts_by: datetime
) -> None:
    requested_at, observation, seq = clock.now(), _call_provisioner(lease, spec, log, now, starts_by), lease.seq
    if observation is None:
        with tenant_scope(lease.tenant_id):
            _clear_claim(lease, now)
            outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
        return
    if lease.state == S.PROVISIONING and observation.seen is ObservedState.ENDED:  # its pod may be gone with this step
        with tenant_scope(lease.tenant_id):
            log = _load_log(lease)
        if log is not None:
            log_collection.collect_last_output(lease, spec, log, now=now)
    observation = _masked(observation, spec)
    # The call may be slow: date the result at the answer, not at the request.
    observed_at = now + (clock.now() - requested_at)
    if observation.last_seen is None and (observation.seen is ObservedState.READY or observation.running):
        observation = replace(observation, last_seen=now)  # and what ran at the request may have ended since
    if lease.state in RUNNING_STATES:  # one that is ending holds its GPU until its pod is proven gone
        observation = _with_lost_gpu(_with_device_doubt(observation, spec, observed_at), spec)
    with tenant_scope(lease.tenant_id):
        try:
            observation_outcomes.apply_observation(lease, observation, observed_at)
            outdated, written = False, True
        except StaleLease:
            written = False
            unchanged = Lease.objects.holding().filter(pk=lease.pk, generation=spec.generation)
            outdated = (state := unchanged.values_list("state", flat=True).first()) is None
            # Its state changed while we worked, and our claim kept out the worker of that message: enqueue it again.
            # Not if its agent was faster and made it active, as we would have.
            if (lease.state, state) != (S.PROVISIONING, S.ACTIVE):
                outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)
        if lease.seq == seq or lease.state in ENDING_STATES:  # other transitions clear the claim themselves
            _clear_claim(lease, now)
    if lease.state == S.QUEUED:
        abandoned_placements.free_abandoned_placements(lease.pk, lease.tenant_id, now=now)
    elif outdated:  # it ended, or was placed again, meanwhile
        with suppress(ClusterUnreachable):
            cluster_provisioners.provisioner_of(spec).remove(spec, now=now)
    elif written and observation.remains and lease.state in RUNNING_STATES:
        with suppress(ClusterUnreachable):  # the next check finds them again
            cluster_provisioners.provisioner_of(spec).let_go(spec, observation.remains)


def _with_lost_gpu(observation: Observation, spec: ProvisionSpec) -> Observation:
    """Return the observation, or a loss if a GPU of the lease is lost.

    Its pod may well be running: NVIDIA's plugins keep pods off a faulty GPU and evict none.
    """
    if spec.gpu_lost_since is None or observation.seen not in (ObservedState.READY, ObservedState.PENDING):
        return observation
    if not observation.answered:
        return observation
    what = "CPUs are" if spec.gpu_model == CPU_MODEL_NAME else "GPU is"
    text = f"its {what} lost: {spec.gpu_fault}"
    return Observation(ObservedState.LOST, text, last_seen=spec.gpu_lost_since, remains=observation.remains)


def _with_device_doubt(observation: Observation, spec: ProvisionSpec, now: datetime) -> Observation:
    """Return the observation as it is to be understood while its devices are in doubt.

    A program that fails with an error of its GPU shows that its device is the lost one.
    """
    since = spec.device_doubted_since
    if since is None or now - since < MARKED_AFTER:
        return observation
    if observation.seen in (ObservedState.ENDED, ObservedState.PENDING) and GPU_ERROR.search(observation.text):
        text = f"its GPU failed: {observation.text}"
        return replace(
            observation, seen=ObservedState.LOST, text=text, last_seen=observation.last_seen or now, undated=True
        )
    if observation.seen is not ObservedState.READY:
        return observation
    seen = {"seen": ObservedState.PENDING, "running": True, "device_doubt": True, "again_in_s": DOUBT_CHECK_S}
    return replace(observation, text=spec.device_doubt, **seen)  # type: ignore[arg-type]


def _masked(observation: Observation, spec: ProvisionSpec) -> Observation:
    """Return an observation without the lease's secrets.

    A cluster reports the last words of a program; they are left out if a secret cannot be read.
    """
    if not observation.text:
        return observation
    if spec.secret_fault and observation.seen is ObservedState.ENDED:
        return replace(observation, text=observation.text.partition(": ")[0])
    mask = excerpt_masker(secret_values(spec.env, spec.secrets, spec.access_token))
    return replace(observation, text=mask(observation.text))


def _call_provisioner(
    lease: Lease, spec: ProvisionSpec, log: LeaseLog | None, now: datetime, starts_by: datetime
) -> Observation | None:
    """Perform the cluster operation for the lease's state; no transaction is open.

    Returns None when it is too late to begin.
    """
    if lease.state == S.PROVISIONING and (earlier := _observe_earlier_attempts(lease, spec, now, starts_by)):
        return earlier
    if log is not None:
        log_collection.collect_last_output(lease, spec, log, now=now)
    if clock.now() > starts_by:
        return None
    provisioner = cluster_provisioners.provisioner_of(spec)
    acts = {S.PROVISIONING: provisioner.ensure, **dict.fromkeys(ENDING_STATES, provisioner.remove)}
    try:
        return acts.get(S(lease.state), provisioner.observe)(spec, now=now)
    except ClusterUnreachable as error:
        text = f"the cluster does not respond: {error}"
        again_in_s = error.again_in_s or Observation.again_in_s
        return Observation(ObservedState.PENDING, text, again_in_s=again_in_s, answered=False)


def _observe_earlier_attempts(
    lease: Lease, spec: ProvisionSpec, now: datetime, requests_until: datetime
) -> Observation | None:
    """Return an observation if an earlier attempt may still run, so this must wait.

    If the earlier cluster is unreachable, wait only when the new attempt is in that same cluster: it may
    stay unreachable for ever.
    """
    if lease.generation <= FIRST_PLACED_GENERATION:
        return None
    going = abandoned_placements.free_abandoned_placements(
        lease.pk, lease.tenant_id, now=now, beside=spec.cluster, requests_until=requests_until
    )
    waits = [each for cluster, each in going.items() if each.answered or cluster == spec.cluster]
    if not waits:
        return None
    answered = any(each.answered for each in waits)
    again_in_s = SOON_S if answered else max(each.again_in_s for each in waits)
    return Observation(ObservedState.PENDING, EARLIER_ATTEMPT_TEXT, again_in_s=again_in_s, answered=answered)


def check_active_leases(*, now: datetime) -> None:
    """Check every active lease at once, for generated histories without workers."""
    with system_scope():
        active = list(Lease.objects.filter(state=S.ACTIVE).order_by("id").values_list("id", "tenant_id"))
    for lease_id, tenant_id in active:
        reconcile_lease(lease_id, tenant_id, now=now)


def due_messages(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return messages for leases that are due and for pools with a queue."""
    with system_scope():
        idle = Lease.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), due_at__lte=now)
        leases = list(idle.order_by("due_at", "id").values_list("id", "tenant_id")[:BATCH])
        return [_lease_message(*lease) for lease in leases] + _other_due_messages(now)


def _other_due_messages(now: datetime) -> list[outbox.TaskMessage]:
    return abandoned_placements.due_abandoned() + spot_reclaims.due_reclaims() + _queue_messages(now)


def messages_for_all_live() -> list[outbox.TaskMessage]:
    """Return a message for every live lease and for every pool with a queue."""
    with system_scope():
        live = Lease.objects.live().exclude(state=S.QUEUED).order_by("id").values_list("id", "tenant_id")
        return [_lease_message(*lease) for lease in live] + _queue_messages(None)


def _lease_message(lease_id: str, tenant_id: str) -> outbox.TaskMessage:
    return "broker.reconcile_lease", lease_id, tenant_id


def _queue_messages(now: datetime | None) -> list[outbox.TaskMessage]:
    """Return a message for every pool with a queue."""
    queued = Lease.objects.filter(state=S.QUEUED)
    if now is not None:
        queued = queued.filter(Q(requeued_at=None) | Q(requeued_at__lte=now))
    pools = queued.values_list("offering__gpu_model", "offering__region")
    return [("broker.run_queue", f"{model}|{region}", "") for model, region in pools.distinct().order_by()]
