"""Detection of changed or exhausted ResourceQuotas in one cluster, by its agent.

Somebody who edits or deletes a project's ResourceQuota removes its limit, or keeps its pods from being
created. The agent repairs it at once, and the project's leases that are being provisioned are checked.
They are also checked when the quota is used up or has room again, so that a waiting lease hears of it.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db.models import Q

from broker.domain.lifecycle.states import LeaseCondition, LeaseState
from broker.models import Lease
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ObservedQuota
from broker.provisioners.kubernetes.client.quantities import parse_quantity
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import ProjectSpec
from broker.services.clusters.drift_repair_queue import DriftRepairQueue, RepairSubject
from ports import outbox
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)
QuotaKey = tuple[str, str]  # namespace, name


@dataclass(frozen=True, slots=True)
class KnownQuota:
    """A ResourceQuota as it was last observed."""

    whose: RepairSubject
    is_right: bool = True
    used_up: tuple[str, ...] = ()


class ObservedQuotas:
    """The ResourceQuotas of one cluster, as its agent knows them.

    One that was never observed is taken to be correct and not used up.
    """

    def __init__(self, cluster_id: str, connection: ClusterConnection, repair_queue: DriftRepairQueue) -> None:
        self._cluster, self._connection, self._repair_queue = cluster_id, connection, repair_queue
        self._known: dict[QuotaKey, KnownQuota] = {}

    def see(self, quota: ObservedQuota, *, gone: bool, now: datetime) -> None:
        """Record a new, changed or deleted quota, and notify the leases it affects."""
        meta = quota.metadata
        whose = meta.labels.get(labels.TENANT, ""), meta.labels.get(labels.PROJECT, "")
        ours = labels.labels_match(meta.labels, {labels.INSTALLATION: self._connection.installation})
        if not ours or not all(whose):
            return
        place = meta.namespace, meta.name
        before = self._known.pop(place, KnownQuota(whose))
        current = KnownQuota(whose, not gone and self._is_right(quota, whose), () if gone else tuple(quota.used_up))
        if not gone:
            self._known[place] = current
        self._report(before, current, now)

    def listed(self, there: set[QuotaKey], *, now: datetime) -> None:
        """Take a complete list: quotas that are not in it were deleted unobserved."""
        for place in self._known.keys() - there:
            before = self._known.pop(place)
            self._report(before, KnownQuota(before.whose, is_right=False), now)

    def _is_right(self, quota: ObservedQuota, whose: RepairSubject) -> bool:
        """Return whether the quota has our values; extra entries are allowed."""
        project = ProjectSpec(*whose, installation=self._connection.installation)
        for wanted in project_objects(project, self._connection.driver):
            meta = wanted["metadata"]
            if wanted["kind"] == "ResourceQuota" and meta["name"] == quota.metadata.name:
                lines = wanted["spec"]["hard"].items()
                hard_limits = quota.spec.hard
                return all(
                    name in hard_limits and parse_quantity(hard_limits[name]) == parse_quantity(text)
                    for name, text in lines
                )
        return True  # it has our labels, but is none that we create

    def _report(self, before: KnownQuota, current: KnownQuota, now: datetime) -> None:
        tenant_id, project_id = current.whose
        if not current.is_right:
            log.warning("managed resource quota was changed", cluster=self._cluster, project=project_id)
            self._repair_queue.hurry_project(current.whose)
        elif current == before:
            return
        elif current.used_up:
            log.warning("managed resource quota is exhausted", project=project_id, of=current.used_up)
        for lease_id in self._being_made(project_id):
            outbox.enqueue("broker.reconcile_lease", lease_id, tenant_id=tenant_id, now=now)

    def _being_made(self, project_id: str) -> list[str]:
        """Return the leases of a project with pods yet to be created here.

        That includes pods that are to be created again.
        """
        anew = Q(state=LeaseState.ACTIVE, conditions__has_key=str(LeaseCondition.UNREACHABLE))
        with system_scope():
            leases = Lease.objects.filter(Q(state=LeaseState.PROVISIONING) | anew, project=project_id)
            here = Q(
                allocations__gpu__node__cluster=self._cluster,
                allocations__released_at=None,
                allocations__leaving_since=None,
            )
            return sorted(set(leases.filter(here).values_list("id", flat=True)))
