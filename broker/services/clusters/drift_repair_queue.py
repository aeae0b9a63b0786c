"""Drift repair queue: objects in a cluster that the agent applies again periodically.

These are projects' network policies and quotas, and the ingress objects of leases. Pods are watched by
the agent and repaired by workers; for these objects nobody is notified of changes. Every project and
every lease has its turn once in ten minutes, or later if the agent's pace requires it: an API server
with thousands of idle leases gets less than one write in a second.
"""

from collections import deque
from collections.abc import Callable

from broker.domain.lifecycle.states import LeaseState
from broker.models import ClusterObject, Lease
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.base import UnsupportedSpec
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import Manifest, ProjectSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.services.leases.provision_specs import load_provision_spec
from ports import clock
from tenants.services.rls import tenant_scope

REPEAT_AFTER_S = 600.0
URGENT_REPEAT_AFTER_S = 10.0  # repeated edits of the same quota are repaired no more often
PACE_S, HURRIED_PACE_S = 2.0, 0.2  # between two applies: normally, and after the ingress settings changed
URGENT_KINDS = frozenset({"Namespace", "ResourceQuota"})
# Never the kinds that create pods.
INGRESS_KINDS = frozenset({"HTTPRoute", "Ingress", "NetworkPolicy", "Secret", "Service"})
RepairSubject = tuple[str, str]  # tenant id, and the id of a project or lease


class RefilledQueue:
    """A queue of subjects that is refilled when it is empty, but not too soon."""

    def __init__(self, load: Callable[[], list[RepairSubject]]) -> None:
        self._load, self._waiting, self._again_at = load, deque[RepairSubject](), 0.0

    def begin_anew(self) -> None:
        self._waiting.clear()
        self._again_at = 0.0

    def next_subject(self) -> RepairSubject | None:
        """Return the next subject; None where all had their turn lately."""
        if not self._waiting and clock.monotonic() >= self._again_at:
            self._again_at = clock.monotonic() + REPEAT_AFTER_S
            self._waiting.extend(self._load())
        return self._waiting.popleft() if self._waiting else None


class DriftRepairQueue:
    """The objects to apply in one cluster, one subject at a time.

    Project objects and lease ingress alternate.
    """

    def __init__(self, cluster_id: str, connection: ClusterConnection) -> None:
        self._cluster, self._connection = cluster_id, connection
        projects, leases = RefilledQueue(self._projects), RefilledQueue(self._leases)
        self._queues = deque([(projects, self._project_objects), (leases, self._ingress_objects)])
        self._urgent: dict[RepairSubject, float] = {}  # projects to repair at once, and when
        self._hurried: dict[RepairSubject, float] = {}
        self.every_s = PACE_S

    def hurry(self) -> None:
        """Restart and go faster once, because the ingress settings changed."""
        self.every_s = HURRIED_PACE_S
        for queue, _ in self._queues:
            queue.begin_anew()

    def hurry_project(self, project: RepairSubject) -> None:
        """Schedule a project at once, because its quota was changed."""
        last = self._hurried.get(project, -URGENT_REPEAT_AFTER_S)
        self._urgent.setdefault(project, max(clock.monotonic(), last + URGENT_REPEAT_AFTER_S))

    def load_next(self) -> list[Manifest]:
        """Return all objects of the next subject; empty where there is none."""
        if urgent := self._hurried_objects():
            self.every_s = HURRIED_PACE_S
            return urgent
        for _ in range(len(self._queues)):
            queue, wanted = self._queues[0]
            self._queues.rotate()
            if subject := queue.next_subject():
                return wanted(*subject)
        self.every_s = PACE_S
        return []

    def _hurried_objects(self) -> list[Manifest]:
        """Return the objects of an urgent project, its quota first.

        A project without leases here is skipped.
        """
        moment = clock.monotonic()
        for project in [each for each, due in self._urgent.items() if due <= moment]:
            del self._urgent[project]
            self._hurried = {each: at for each, at in self._hurried.items() if moment - at < URGENT_REPEAT_AFTER_S} | {
                project: moment
            }
            if project in self._projects():
                return sorted(self._project_objects(*project), key=lambda each: each["kind"] not in URGENT_KINDS)
        return []

    def _anchored(self, mark: str) -> list[RepairSubject]:
        """Return the (tenant, label value) pairs of all our anchors that stay."""
        anchors = ClusterObject.objects.filter(cluster=self._cluster, kind=CONFIG_MAP.name).exclude(spec_name="")
        marks = anchors.exclude(body__metadata__has_key="deletionTimestamp").values_list("body__metadata__labels")
        ours = (
            each for (each,) in marks if labels.labels_match(each, {labels.INSTALLATION: self._connection.installation})
        )
        return sorted({(each[labels.TENANT], each[mark]) for each in ours})

    def _projects(self) -> list[RepairSubject]:
        return self._anchored(labels.PROJECT)

    def _leases(self) -> list[RepairSubject]:
        return self._anchored(labels.LEASE)

    def _project_objects(self, tenant_id: str, project_id: str) -> list[Manifest]:
        project = ProjectSpec(tenant_id, project_id, installation=self._connection.installation)
        return project_objects(
            project, self._connection.driver, allowed_namespaces=self._connection.allowed_namespaces()
        )

    def _ingress_objects(self, tenant_id: str, lease_id: str) -> list[Manifest]:
        """Return the ingress objects of an active lease.

        Leases that begin or end are handled by workers.
        """
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").filter(pk=lease_id, state=LeaseState.ACTIVE).first()
            spec = load_provision_spec(lease, with_secrets=True) if lease else None
        if spec is None:
            return []
        name = spec_name(spec.lease_id, spec.generation)
        anchors = ClusterObject.objects.filter(cluster=self._cluster, kind=CONFIG_MAP.name, spec_name=name)
        uid = anchors.values_list("uid", flat=True).first()
        if uid is None:
            return []  # the anchor of its present generation is not created yet
        try:
            made = lease_objects(
                lease_spec(spec, self._connection.installation), self._connection.driver, anchor_uid=uid
            )
        except UnsupportedSpec:
            return []  # a worker will report it
        return [each for each in made if each["kind"] in INGRESS_KINDS]
