"""Projects' quotas in one cluster, as its agent sees them: what somebody else did to one is not left for minutes.

Whoever edits or deletes one takes a project's ceiling away, or lets none of its pods be made. It has its turn in the
agent's round at once, and those of its leases that are being made are looked at. The same where others use it up, or
leave room again: a lease that waits for room hears of it then.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db.models import Q

from broker.domain.states import Condition, LeaseState
from broker.models import Lease
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.objects import Quota
from broker.provisioners.kubernetes.quantities import amount
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.spec import ProjectSpec
from broker.services.rounds import Round, Subject
from ports import doorbell
from tenants.services.walls import as_sweep

log = structlog.get_logger(__name__)
Place = tuple[str, str]  # a namespace, a name


@dataclass(frozen=True, slots=True)
class Known:
    """A quota as it was seen last."""

    whose: Subject
    is_right: bool = True
    used_up: tuple[str, ...] = ()


class Ceilings:
    """What one agent knows of the quotas in its cluster; one that it has not seen was right, and had room."""

    def __init__(self, cluster_id: str, way: Way, round_: Round) -> None:
        self._cluster, self._way, self._round = cluster_id, way, round_
        self._known: dict[Place, Known] = {}

    def see(self, quota: Quota, *, gone: bool, now: datetime) -> None:
        """Take in one that is new, changed or gone, and tell whom it concerns."""
        meta = quota.metadata
        whose = meta.labels.get(labels.TENANT, ""), meta.labels.get(labels.PROJECT, "")
        ours = labels.fit(meta.labels, {labels.INSTALLATION: self._way.installation})
        if not ours or not all(whose):
            return
        place = meta.namespace, meta.name
        before = self._known.pop(place, Known(whose))
        seen = Known(whose, not gone and self._is_right(quota, whose), () if gone else tuple(quota.used_up))
        if not gone:
            self._known[place] = seen
        self._tell(before, seen, now)

    def listed(self, there: set[Place], *, now: datetime) -> None:
        """Take a list as all there is: what is not in it was deleted while nobody watched."""
        for place in self._known.keys() - there:
            before = self._known.pop(place)
            self._tell(before, Known(before.whose, is_right=False), now)

    def _is_right(self, quota: Quota, whose: Subject) -> bool:
        """Tell whether it says what we would have it say; what somebody added beside that is his."""
        project = ProjectSpec(*whose, installation=self._way.installation)
        for wanted in project_objects(project, self._way.driver):
            meta = wanted["metadata"]
            if wanted["kind"] == "ResourceQuota" and meta["name"] == quota.metadata.name:
                lines = wanted["spec"]["hard"].items()
                said = quota.spec.hard
                return all(name in said and amount(said[name]) == amount(text) for name, text in lines)
        return True  # under our marks, but none that we make

    def _tell(self, before: Known, seen: Known, now: datetime) -> None:
        tenant_id, project_id = seen.whose
        if not seen.is_right:
            log.warning("somebody changed a quota of ours", cluster=self._cluster, project=project_id)
            self._round.hurry_walls(seen.whose)
        elif seen == before:
            return
        elif seen.used_up:
            log.warning("a quota of ours is used up", project=project_id, of=seen.used_up)
        for lease_id in self._being_made(project_id):
            doorbell.ring("broker.step", lease_id, tenant_id=tenant_id, now=now)

    def _being_made(self, project_id: str) -> list[str]:
        """Name the leases of a project whose pods are yet to be made, or to be made anew, in this cluster."""
        anew = Q(state=LeaseState.ACTIVE, conditions__has_key=str(Condition.UNREACHABLE))
        with as_sweep():
            leases = Lease.objects.filter(Q(state=LeaseState.PROVISIONING) | anew, project=project_id)
            here = Q(
                allocations__gpu__node__cluster=self._cluster,
                allocations__released_at=None,
                allocations__leaving_since=None,
            )
            return sorted(set(leases.filter(here).values_list("id", flat=True)))
