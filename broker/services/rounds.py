"""The round that an agent makes of all that stands in its cluster for long: projects' walls, and the ways into leases.

What a lease runs on is seen by the agent's watches and put right by workers; of these nobody is told. Every project and
every lease has its turn once in ten minutes, or as soon after as the agent's pace lets it: an API server that serves
thousands of leases at rest is written to less than once in a second.
"""

from collections import deque
from collections.abc import Callable

from broker.domain.states import LeaseState
from broker.models import ClusterObject, Lease
from broker.provisioners.base import order_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.drivers.base import Unfit
from broker.provisioners.kubernetes.kinds import CONFIG_MAP
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.spec import Manifest, ProjectSpec
from broker.provisioners.kubernetes.specs import lease_spec
from broker.services.leases.orders import order_of
from ports import clock
from tenants.services.walls import as_tenant

AGAIN_S = 600.0
URGENT_AGAIN_S = 10.0  # who edits a wall as soon as it is put right is answered no more often
EVERY_S, HURRIED_S = 2.0, 0.2  # between two applies: at rest, and when people shall come in another way
FIRST = frozenset({"Namespace", "ResourceQuota"})
DOORS = frozenset({"HTTPRoute", "Ingress", "NetworkPolicy", "Secret", "Service"})  # never what makes pods
Subject = tuple[str, str]  # a tenant, and a project or a lease of it


class Ring:
    """Some subjects, each of which has its turn, and then all of them again, but not too soon."""

    def __init__(self, load: Callable[[], list[Subject]]) -> None:
        self._load, self._waiting, self._again_at = load, deque[Subject](), 0.0

    def begin_anew(self) -> None:
        self._waiting.clear()
        self._again_at = 0.0

    def take(self) -> Subject | None:
        """Return whose turn it is; None where all had theirs lately."""
        if not self._waiting and clock.monotonic() >= self._again_at:
            self._again_at = clock.monotonic() + AGAIN_S
            self._waiting.extend(self._load())
        return self._waiting.popleft() if self._waiting else None


class Round:
    """What is to be put right in one cluster, one subject at a time: walls and doors by turns."""

    def __init__(self, cluster_id: str, way: Way) -> None:
        self._cluster, self._way = cluster_id, way
        walls, doors = Ring(self._projects), Ring(self._leases)
        self._turns = deque([(walls, self._walls), (doors, self._doors)])
        self._urgent: dict[
            Subject, float
        ] = {}  # projects whose walls are known to be wrong, and when they are due
        self._hurried: dict[Subject, float] = {}
        self.every_s = EVERY_S

    def hurry(self) -> None:
        """Begin anew and go faster, once: people shall come in another way."""
        self.every_s = HURRIED_S
        for ring, _ in self._turns:
            ring.begin_anew()

    def hurry_walls(self, project: Subject) -> None:
        """Let a project have its turn at once: somebody was at its quota, and perhaps at more."""
        last = self._hurried.get(project, -URGENT_AGAIN_S)
        self._urgent.setdefault(project, max(clock.monotonic(), last + URGENT_AGAIN_S))

    def next(self) -> list[Manifest]:
        """Return all that shall be there of whose turn it is; nothing where nobody's is."""
        if walls := self._hurried_walls():
            self.every_s = HURRIED_S
            return walls
        for _ in range(len(self._turns)):
            ring, wanted = self._turns[0]
            self._turns.rotate()
            if subject := ring.take():
                return wanted(*subject)
        self.every_s = EVERY_S
        return []

    def _hurried_walls(self) -> list[Manifest]:
        """Return the walls of a project that cannot wait, its quota early; one without leases here is left."""
        moment = clock.monotonic()
        for project in [each for each, due in self._urgent.items() if due <= moment]:
            del self._urgent[project]
            self._hurried = {
                each: at for each, at in self._hurried.items() if moment - at < URGENT_AGAIN_S
            } | {project: moment}
            if project in self._projects():
                return sorted(self._walls(*project), key=lambda each: each["kind"] not in FIRST)
        return []

    def _anchored(self, mark: str) -> list[Subject]:
        """Return what all anchors of ours that stay carry of a mark, each once."""
        anchors = ClusterObject.objects.filter(cluster=self._cluster, kind=CONFIG_MAP.name).exclude(
            order_name=""
        )
        marks = anchors.exclude(body__metadata__has_key="deletionTimestamp").values_list(
            "body__metadata__labels"
        )
        ours = (each for (each,) in marks if labels.fit(each, {labels.INSTALLATION: self._way.installation}))
        return sorted({(each[labels.TENANT], each[mark]) for each in ours})

    def _projects(self) -> list[Subject]:
        return self._anchored(labels.PROJECT)

    def _leases(self) -> list[Subject]:
        return self._anchored(labels.LEASE)

    def _walls(self, tenant_id: str, project_id: str) -> list[Manifest]:
        project = ProjectSpec(tenant_id, project_id, installation=self._way.installation)
        return project_objects(project, self._way.driver, entrances=self._way.entrances())

    def _doors(self, tenant_id: str, lease_id: str) -> list[Manifest]:
        """Return how a lease that is active is reached; what begins or ends is a worker's."""
        with as_tenant(tenant_id):
            lease = (
                Lease.objects.select_related("offering").filter(pk=lease_id, state=LeaseState.ACTIVE).first()
            )
            order = order_of(lease) if lease else None
        if order is None:
            return []
        name = order_name(order.lease_id, order.generation)
        anchors = ClusterObject.objects.filter(cluster=self._cluster, kind=CONFIG_MAP.name, order_name=name)
        uid = anchors.values_list("uid", flat=True).first()
        if uid is None:
            return []  # of another generation: its own is not made yet
        try:
            made = lease_objects(lease_spec(order, self._way.installation), self._way.driver, anchor_uid=uid)
        except Unfit:
            return []  # as workers will say of it
        return [each for each in made if each["kind"] in DOORS]
