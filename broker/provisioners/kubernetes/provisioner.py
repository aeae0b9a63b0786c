"""Kubernetes provisioner: creates, observes and removes leases in a cluster.

Every step may be repeated: names are permanent, and creates report what already exists. The anchor is
created first and owns everything else, so deleting it deletes everything.

Objects we did not create are never adopted, changed or deleted: our labels are checked first, and
deletes carry the uid of the object that was read.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from broker.provisioners.base import (
    ClusterUnreachable,
    CommandFailed,
    HeldPod,
    ImagePresence,
    KeptImage,
    LogRead,
    Observation,
    ObservedState,
    ProvisionSpec,
    VolumeRef,
)
from broker.provisioners.kubernetes import image_prepulls, labels
from broker.provisioners.kubernetes.client import api_errors
from broker.provisioners.kubernetes.client.cluster_identity import check_cluster_identity
from broker.provisioners.kubernetes.client.kinds import POD, Kind, ObjectRef
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, ObservedPod, decode
from broker.provisioners.kubernetes.client.pod_exec import in_background, run_in_pod
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection, connect_to_cluster
from broker.provisioners.kubernetes.device_check import find_device_failure
from broker.provisioners.kubernetes.drivers.base import UnsupportedSpec, claimed_ranks
from broker.provisioners.kubernetes.lease_creation import (
    ForeignObjectError,
    allow_pod_access,
    apply_project,
    create_anchor,
    create_children,
    repair_children,
)
from broker.provisioners.kubernetes.observe.container_logs import NO_RIGHT, read_pods_log
from broker.provisioners.kubernetes.observe.node_health import find_lost_node, observe_shutdown
from broker.provisioners.kubernetes.observe.object_lookup import (
    CONTROLLERS,
    LeaseObjects,
    find_all_leases,
    find_lease_objects,
    lease_selector,
    pod_creation_error,
    read_heartbeats,
    read_nodes,
)
from broker.provisioners.kubernetes.observe.observation_cache import CachedObservation
from broker.provisioners.kubernetes.observe.pod_observation import (
    UNHEALTHY_DEVICE,
    ended_at,
    has_ended,
    has_metering_finalizer,
    held_pod,
    may_have_run,
    observe_pods,
)
from broker.provisioners.kubernetes.observe.resource_claims import claims_fault, read_claims
from broker.provisioners.kubernetes.render.job_deadlines import job_deadlines
from broker.provisioners.kubernetes.render.lease import format_time, namespace_of
from broker.provisioners.kubernetes.render.pod import CONTAINER_NAME
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.provisioners.kubernetes.volume_claims import remove_volume_claim
from ports import clock

log = structlog.get_logger(__name__)
# Without a pod for this long: read its controller's error and repair missing children.
CONTROLLER_GRACE = timedelta(seconds=4)
PROJECT_TTL_S = 600.0  # how long applied project objects are assumed to be unchanged
IDENTITY_TTL_S = 15.0  # how long a cluster's checked identity is trusted
SOON_S, QUOTA_S = 0.5, 30.0
# One response that finds nothing may be wrong. Without an agent it is believed at the second look.
GONE_CONFIRM_AFTER = timedelta(seconds=3)
GONE_FORGOTTEN_AFTER = timedelta(minutes=10)
WATCHED_POLL_S = 10.0  # poll interval where the agent reports every change
LOG_READ_S = 2.5  # one read of a log: it comes before a removal in the same step
RELEASE_TIMEOUT_S = 4.0  # of the time for one step: a deletion must not wait for an unresponsive server
PAID_UNTIL_LEEWAY = timedelta(minutes=20)  # we stop unpaid leases; the dead man's switch may be this much later


class KubernetesProvisioner:
    """Makes leases real in one cluster.

    It keeps only what saves requests: what exists is read from the cluster, what is wanted comes with
    the provision spec.
    """

    def __init__(self, cluster_id: str, connection: ClusterConnection | None = None) -> None:
        self._cluster_id, self._connection = cluster_id, connection
        self._projects_applied: dict[str, float] = {}  # projects whose objects were applied, and when
        self._sure_until = 0.0
        self._made: dict[str, str] = {}  # specs whose objects were all created, with their anchor's uid
        self._gone: dict[str, datetime] = {}  # specs of which nothing was found, and since when

    def ensure(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        known = self._known(spec, now)
        if known and (observation := self._well(known, self._spec(spec), now)):
            return observation
        with self._asking(sure=known is not None) as api:
            try:
                lease_spec = self._spec(spec)
                if spec.name not in self._made and self._make(api, spec, lease_spec) and known:
                    return Observation(ObservedState.PENDING, "being created", again_in_s=WATCHED_POLL_S)
                found = find_lease_objects(api, lease_spec)
                if found.anchor is None or found.anchor.metadata.uid != self._made[spec.name]:
                    self._made.pop(spec.name)  # somebody deleted it: the next step creates it again
                    return Observation(ObservedState.PENDING, "being created", again_in_s=SOON_S)
                if found.ends:
                    return Observation(ObservedState.GONE, "it is shutting down", remains=_ended_pods(found.pods))
                observation = self._observe_found(api, lease_spec, found, now)
                return observation if observation.seen is ObservedState.PENDING else self._surely(api, observation)
            except (UnsupportedSpec, ForeignObjectError, api_errors.ObjectInvalid, api_errors.AdmissionDenied) as error:
                return Observation(ObservedState.REFUSED, f"the cluster rejected it: {error}"[:300])
            except api_errors.NamespaceQuotaExceeded as error:
                log.error(
                    "resource quota in the cluster is smaller than the project's quota", spec=spec.name, said=str(error)
                )
                text = "the project's resource quota in the cluster is exhausted"
                return Observation(ObservedState.PENDING, text, again_in_s=QUOTA_S)
            except api_errors.NamespaceTerminating:
                self._projects_applied.pop(spec.project_id, None)
                text = "its project is being removed from the cluster"
                pods = find_lease_objects(api, lease_spec).pods  # its deletion waits for pods that we hold
                return Observation(ObservedState.PENDING, text, again_in_s=QUOTA_S, remains=_ended_pods(pods))

    def observe(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        known, lease_spec = self._known(spec, now), self._spec(spec)
        # A watch may lag behind the heartbeat's: what it still shows of an ended pod proves nothing.
        observation = self._well(known, lease_spec, now) if known and not spec.doubted else None
        if known and observation and not self._is_unpaid(lease_spec, known.objects):
            return self._with_device_check(spec, observation, known.objects, now)
        with self._asking(sure=known is not None) as api:
            found = find_lease_objects(api, lease_spec)
            if found.anchor is None or found.ends:
                self._make_sure(api)
                return self._taken(api, lease_spec, found, now)
            self._keep_paid(api, lease_spec, found)
            observation = self._surely(api, self._observe_found(api, lease_spec, found, now))
            return self._with_device_check(spec, observation, found, now)

    def _with_device_check(
        self, spec: ProvisionSpec, observation: Observation, found: LeaseObjects, now: datetime
    ) -> Observation:
        """Return the observation, or a loss if the lease's GPU failed.

        It is charged until the first check that shows it: an earlier one may have found its devices well.
        """
        in_doubt = spec.device_doubt or spec.device_failed
        if not in_doubt or observation.seen is not ObservedState.READY:
            return observation
        said = find_device_failure(self._cluster_connection.transport.connection(), found.pods)
        if not said:
            return observation
        return Observation(ObservedState.LOST, f"{UNHEALTHY_DEVICE}: {said}", last_seen=now, undated=True)

    def let_go(self, spec: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        with self._asking() as api:
            _release_pods(api, namespace_of(self._spec(spec)), remains)

    def run_command(self, spec: ProvisionSpec, command: str, *, now: datetime) -> None:
        with self._asking() as api:
            found = find_lease_objects(api, self._spec(spec))
            running = [pod for pod in found.pods if pod.status.phase == "Running"]
            if not running or found.ends:
                raise CommandFailed("its pod does not run")
            for pod in running:
                run_in_pod(
                    self._cluster_connection.transport.connection(),
                    namespace=pod.metadata.namespace,
                    pod=pod.metadata.name,
                    container=CONTAINER_NAME,
                    command=in_background(command),
                )

    def remove(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        self._made.pop(spec.name, None)
        known = self._known(spec, now)
        with self._asking(sure=known is not None) as api:
            if known and known.well and known.objects.anchor:
                with _releasing_pods(api, _held_pods(known.objects.pods)):
                    if not known.objects.ends:
                        _delete(api, known.objects.ref.kind, known.objects.anchor)
                return replace(observe_shutdown(known.objects.pods, now=now), again_in_s=WATCHED_POLL_S)
            # Absence frees the capacity, so only the cluster itself may report it.
            found = find_lease_objects(api, self._spec(spec))
            if found.is_gone:
                self._make_sure(api)
                if known and not known.objects.is_gone:  # its watch would have reported it: one of the two is wrong
                    return replace(observe_shutdown(known.objects.pods, now=now), again_in_s=SOON_S)
                if known is None and (waits_s := self._doubts(spec.name, now)):
                    return replace(observe_shutdown((), now=now), again_in_s=waits_s)
                return Observation(ObservedState.GONE)
            self._gone.pop(spec.name, None)
            with _releasing_pods(api, _held_pods(found.pods)):
                self._take_down(api, spec.lease_id, spec.generation, found)
            lost = self._lost(api, [pod.spec.node_name for pod in found.pods])
            return self._surely(api, lost) if lost else observe_shutdown(found.pods, now=now)

    def _doubts(self, name: str, now: datetime) -> float:
        """Return the seconds until absence may be confirmed by a second look.

        Zero once enough time has passed since nothing was found.
        """
        self._gone = {each: since for each, since in self._gone.items() if now - since < GONE_FORGOTTEN_AFTER}
        waited = now - self._gone.setdefault(name, now)
        if waited < GONE_CONFIRM_AFTER:
            return (GONE_CONFIRM_AFTER - waited).total_seconds()
        del self._gone[name]
        return 0.0

    def read_log(self, spec: ProvisionSpec, cursor: dict[str, Any], *, newest_only: bool, now: datetime) -> LogRead:
        known = self._known(spec, now)  # which pods there are is then not asked
        with self._asking(sure=known is not None, seconds=LOG_READ_S) as api:
            pods = known.objects.pods if known else find_lease_objects(api, self._spec(spec)).pods
            read = read_pods_log(api, pods, cursor, newest_only=newest_only, now=now)
            # A project of before has no access yet, or somebody took it away.
            if read.fault == NO_RIGHT and allow_pod_access(api, self._spec(spec).project):
                read = read_pods_log(api, pods, cursor, newest_only=newest_only, now=now)
            return read

    def names(self) -> list[str]:
        if (memory := self._cluster_connection.memory) and (known := memory.names(now=clock.now())) is not None:
            return known
        with self._asking() as api:
            self._make_sure(api)
            return sorted(find_all_leases(api, self._cluster_connection.installation))

    def remove_named(self, name: str, *, now: datetime) -> None:
        with self._asking() as api:
            there = find_all_leases(api, self._cluster_connection.installation, spec_name=name).get(name, [])
            pods = [thing.metadata for kind, thing in there if kind is POD]
            held = [
                (meta.namespace, HeldPod(meta.name, meta.uid))
                for meta in pods
                if labels.METERING_FINALIZER in meta.finalizers
            ]
            with _releasing_pods(api, held):
                for kind, thing in there:
                    if kind is not POD:
                        _delete(api, kind, thing)
                for meta in pods:
                    lease_id, generation = meta.labels[labels.LEASE], meta.labels[labels.GENERATION]
                    self._take_down_orphans(api, meta.namespace, lease_id, generation)

    def remove_volume(self, volume: VolumeRef, *, now: datetime) -> Observation:
        with self._asking() as api:
            if left := remove_volume_claim(api, volume, installation=self._cluster_connection.installation):
                return left
            self._make_sure(api)
            return Observation(ObservedState.GONE)

    def keep_image(self, kept: KeptImage, *, now: datetime) -> ImagePresence:
        with self._asking() as api:
            return image_prepulls.keep_image(api, kept, installation=self._cluster_connection.installation)

    def drop_image(self, kept: KeptImage, *, now: datetime) -> bool:
        with self._asking() as api:
            return image_prepulls.drop_image(api, kept)

    @contextmanager
    def _asking(self, *, sure: bool = False, seconds: float | None = None) -> Iterator[KubernetesApi]:
        """Open the API for one step; raise refusals as ClusterUnreachable.

        A refusal that says nothing about the lease proves nothing. `sure` means that the agent already
        confirmed that this is the registered cluster.
        """
        try:
            transport = self._cluster_connection.transport
            api = transport.within() if seconds is None else transport.within(seconds)
            if not sure and clock.monotonic() >= self._sure_until:
                self._make_sure(api)
            yield api
        except api_errors.AccessDenied as error:
            # What we may not read may well exist: no lease ends because of it.
            log.error("cluster denies access", cluster=self._cluster_id, said=str(error))
            raise ClusterUnreachable(f"the cluster denies the broker access: {error}", again_in_s=QUOTA_S) from error
        except api_errors.ApiRefusal as error:  # somebody changed it between two calls: try again
            raise ClusterUnreachable(f"it changed in the meantime: {error}", again_in_s=SOON_S) from error

    def _make_sure(self, api: KubernetesApi) -> None:
        """Raise unless this is the registered cluster in no older state."""
        joined, reached = self._cluster_connection.uid(), self._cluster_connection.reached()
        if joined:
            check_cluster_identity(api, joined, reached)
        self._sure_until = clock.monotonic() + IDENTITY_TTL_S

    def _surely(self, api: KubernetesApi, observation: Observation) -> Observation:
        """Return an observation; verify the cluster's identity first if nothing runs.

        In a cluster restored to an older state even nodes were last heard of long ago, so the identity
        is checked after the observation.
        """
        if not _is_running(observation):
            self._make_sure(api)
        return observation

    def _make(self, api: KubernetesApi, spec: ProvisionSpec, lease_spec: LeaseSpec) -> bool:
        """Create the missing objects of a spec; False if it is being deleted."""
        driver = self._cluster_connection.driver
        stand = self._projects_applied.get(spec.project_id)
        if stand is None or clock.monotonic() - stand > PROJECT_TTL_S:
            apply_project(
                api, driver, lease_spec.project, allowed_namespaces=self._cluster_connection.allowed_namespaces()
            )
            allow_pod_access(api, lease_spec.project)
            self._projects_applied[spec.project_id] = clock.monotonic()
        try:
            anchor = create_anchor(api, driver, lease_spec)
            is_there = anchor.metadata.deletion_timestamp is None
            if is_there:
                create_children(api, driver, lease_spec, anchor_uid=anchor.metadata.uid)
        except api_errors.ObjectMissing:  # the namespace was deleted by hand: apply the project's objects next time
            self._projects_applied.pop(spec.project_id, None)
            raise
        self._made[spec.name] = anchor.metadata.uid
        return is_there

    def _spec(self, spec: ProvisionSpec) -> LeaseSpec:
        return lease_spec(spec, self._cluster_connection.installation)

    @property
    def _cluster_connection(self) -> ClusterConnection:
        if self._connection is None:
            self._connection = connect_to_cluster(self._cluster_id)
        return self._connection

    def _known(self, spec: ProvisionSpec, now: datetime) -> CachedObservation | None:
        """Return the agent's cached observation; None if the cluster must be asked."""
        memory = self._cluster_connection.memory
        return memory.find_observation(self._spec(spec), now=now) if memory else None

    def _well(self, known: CachedObservation, lease_spec: LeaseSpec, now: datetime) -> Observation | None:
        """Return the cached observation of a healthy or starting lease.

        None otherwise: then the cluster is asked.
        """
        found = known.objects
        if found.anchor is None or found.ends or not known.well:
            return None
        made = found.anchor.metadata.creation_timestamp
        if len(found.pods) < len(lease_spec.nodes) and made and now - made > CONTROLLER_GRACE:
            return None
        observation = observe_pods(found.pods, ranks=len(lease_spec.nodes), now=now)
        if not self._holds(known, lease_spec, observation):
            return None
        if observation.seen is ObservedState.READY:
            return replace(observation, last_seen=known.at)
        if observation.seen is not ObservedState.PENDING:
            return None
        last_seen = known.at if observation.running else observation.last_seen
        return replace(observation, last_seen=last_seen, again_in_s=WATCHED_POLL_S)

    def _holds(self, known: CachedObservation, lease_spec: LeaseSpec, observation: Observation) -> bool:
        """Tell whether its claims hold what was sold, if the agent follows claims."""
        if known.claims is None or not self._cluster_connection.driver.uses_resource_claims:
            return True
        if any(claim.strange for claim in known.claims):
            return False
        allocated = sum(bool(claim.devices) for claim in known.claims)
        claimed = claimed_ranks(self._cluster_connection.driver, lease_spec)
        return not _is_running(observation) or allocated >= len(claimed)

    def _is_unpaid(self, lease_spec: LeaseSpec, found: LeaseObjects) -> bool:
        """Tell whether the recorded paid-until time is too early or far too late.

        The dead man's switch acts on it.
        """
        if found.anchor is None:
            return False
        said = found.anchor.metadata.annotations.get(labels.PAID_UNTIL, "")
        return not format_time(lease_spec.paid_until) <= said <= format_time(lease_spec.paid_until + PAID_UNTIL_LEEWAY)

    def _observe_found(
        self, api: KubernetesApi, lease_spec: LeaseSpec, found: LeaseObjects, now: datetime
    ) -> Observation:
        if lost := self._lost(api, lease_spec.nodes):
            return lost
        observation = observe_pods(found.pods, ranks=len(lease_spec.nodes), now=now)
        made = found.anchor.metadata.creation_timestamp if found.anchor else None
        lacks_pod, lacks_claim = len(found.pods) < len(lease_spec.nodes), False
        if ranks := claimed_ranks(self._cluster_connection.driver, lease_spec):
            claims = read_claims(api, lease_spec, ranks)
            if why := claims_fault(api, lease_spec, claims, runs=_is_running(observation)):
                # A pod that ended since then returned its devices: nothing is lost.
                again = observe_pods(find_lease_objects(api, lease_spec).pods, ranks=len(lease_spec.nodes), now=now)
                return (
                    again
                    if _is_running(observation) and not _is_running(again)
                    else Observation(ObservedState.LOST, why)
                )
            lacks_claim = None in claims.values()
        if (lacks_pod or lacks_claim) and made and now - made > CONTROLLER_GRACE:
            repair_children(api, self._cluster_connection.driver, lease_spec, found)
            if lacks_pod and (why := pod_creation_error(api, lease_spec)):
                return _creation_failure(why)
        return observation

    def _taken(self, api: KubernetesApi, lease_spec: LeaseSpec, found: LeaseObjects, now: datetime) -> Observation:
        """Return when a lease ended that something else deleted, by its held pods."""
        if found.pods and (lost := self._lost(api, lease_spec.nodes)):
            return lost  # its node was lost first
        since = ended_at(found.anchor, found.pods)
        if since is None and any(pod.metadata.deletion_timestamp and not has_ended(pod) for pod in found.pods):
            return observe_shutdown(found.pods, now=now)
        if since is None and any(may_have_run(pod) and not has_ended(pod) for pod in found.pods):
            since = now  # only its anchor was deleted: pods that still run prove that it ran until now
        return Observation(ObservedState.GONE, "it is no longer in the cluster", last_seen=since)

    def _lost(self, api: KubernetesApi, hosts: list[str] | tuple[str, ...]) -> Observation | None:
        named = {host for host in hosts if host}
        there = read_nodes(api, named)
        if find_lost_node(named, there, {}) is None:
            return None
        return find_lost_node(named, there, read_heartbeats(api, named))

    def _keep_paid(self, api: KubernetesApi, lease_spec: LeaseSpec, found: LeaseObjects) -> None:
        """Record the paid-until time, which stops the lease if the broker is dead.

        The anchor is written last, since every check reads it: a crash before that leaves all writes to
        the next step.
        """
        if found.anchor and self._is_unpaid(lease_spec, found):
            for ref, deadline in job_deadlines(lease_spec, since=found.anchor.metadata.creation_timestamp):
                with suppress(api_errors.ObjectMissing):  # a re-created one gets the same deadline
                    api.merge(ref, deadline, manager=labels.LEASES)
            meta = {
                "uid": found.anchor.metadata.uid,
                "annotations": {labels.PAID_UNTIL: format_time(lease_spec.paid_until)},
            }
            api.merge(found.ref, {"metadata": meta}, manager=labels.LEASES)

    def _take_down(self, api: KubernetesApi, lease_id: str, generation: int, found: LeaseObjects) -> None:
        if found.anchor is not None:
            _delete(api, found.ref.kind, found.anchor)
        else:
            self._take_down_orphans(api, found.ref.namespace, lease_id, str(generation))

    def _take_down_orphans(self, api: KubernetesApi, namespace: str, lease_id: str, generation: str) -> None:
        """Delete what is left of a lease whose anchor was deleted without it.

        A pod is deleted with its controller.
        """
        for kind in (*CONTROLLERS, POD):
            marks = lease_selector(lease_id, generation)
            items, _ = api.list_all(kind, namespace=namespace, labels=marks, metadata_only=True)
            for item in items:
                _delete(api, kind, decode(item, ClusterObjectHeader))


def _is_running(observation: Observation) -> bool:
    return observation.seen is ObservedState.READY or observation.running


def _held_pods(pods: Iterable[ObservedPod]) -> list[tuple[str, HeldPod]]:
    """Return the pods that wait for release, each with its namespace."""
    return [(pod.metadata.namespace, held_pod(pod)) for pod in pods if has_metering_finalizer(pod)]


def _ended_pods(pods: Iterable[ObservedPod]) -> tuple[HeldPod, ...]:
    """Return the pods that ended and wait for release."""
    return tuple(held_pod(pod) for pod in pods if has_metering_finalizer(pod) and has_ended(pod))


@contextmanager
def _releasing_pods(api: KubernetesApi, held: Iterable[tuple[str, HeldPod]]) -> Iterator[None]:
    """Release pods, then run the block that deletes their lease.

    A pod that is held while its lease is deleted was created meanwhile, and is new information. A
    failed release is raised only after the lease's deletion was requested: nothing may keep running
    unpaid.
    """
    failed: api_errors.ApiRefusal | ClusterUnreachable | None = None
    soon = api.with_deadline(RELEASE_TIMEOUT_S)
    for namespace, remains in held:
        try:
            _release_pods(soon, namespace, [remains])
        except api_errors.ApiRefusal as error:
            failed = failed or error
        except ClusterUnreachable as error:
            failed = failed or error
            break  # the others would wait as long
    yield
    if failed:
        raise failed


def _release_pods(api: KubernetesApi, namespace: str, remains: Iterable[HeldPod]) -> None:
    for each in remains:
        api.let_go(ObjectRef(POD, each.name, namespace), finalizer=labels.METERING_FINALIZER, uid=each.uid)


def _delete(api: KubernetesApi, kind: Kind, thing: ClusterObjectHeader) -> None:
    """Delete one object with its dependents, unless that is under way."""
    meta = thing.metadata
    if meta.deletion_timestamp is None or (kind is not POD and "foregroundDeletion" not in meta.finalizers):
        api.delete(ObjectRef(kind, meta.name, meta.namespace), uid=meta.uid)


def _creation_failure(why: str) -> Observation:
    if "exceeded quota" in why:
        return Observation(
            ObservedState.PENDING, "the project's resource quota in the cluster is exhausted", again_in_s=QUOTA_S
        )
    if "forbidden" in why or "Invalid value" in why:
        return Observation(ObservedState.REFUSED, f"the cluster rejected its pod: {why}"[:300])
    return Observation(ObservedState.PENDING, f"the cluster could not create its pod yet: {why}"[:300])
