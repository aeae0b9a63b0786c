"""Archiving of a project: nothing in it begins to cost, and what waits is released."""

from datetime import datetime

from django.db import transaction

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, Volume
from broker.services.leases.lifecycle import termination
from ports import outbox
from tenants.models import Project
from tenants.services import projects
from tenants.services.actors import Actor
from tenants.services.projects import ProjectTreeError
from tenants.services.rls import tenant_scope

RELEASE_TASK = "broker.release_waiting_leases"
WAITING_STATES = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING)


@transaction.atomic
def archive_project(project: Project, *, actor: Actor, now: datetime) -> Project:
    """Archive a project; active leases go on until their end, leases that wait are released."""
    archived = projects.archive(project, actor=actor, now=now)  # from here on no volume is added
    volumes = Volume.objects.existing().filter(project=project).count()
    if volumes:
        raise ProjectTreeError(
            f"{project.name} has {volumes} {'volume' if volumes == 1 else 'volumes'}, charged while they exist.",
            fix="Delete its volumes first.",
        )
    outbox.enqueue(RELEASE_TASK, project.pk, tenant_id=project.tenant_id, now=now)
    return archived


def release_waiting_leases(project_id: str, tenant_id: str, *, now: datetime) -> None:
    """Release the leases of an archived project that are not active yet."""
    with tenant_scope(tenant_id):
        project = Project.objects.filter(pk=project_id, archived_at__isnull=False).first()
        if project is None:
            return  # open again
        waiting = Lease.objects.select_related("offering").filter(project=project, state__in=WAITING_STATES)
        for lease in waiting.order_by("id"):
            cause = f"{project.name} was archived before it started"
            termination.release_lease(lease, reason=EndReason.BY_TENANT, now=now, cause=cause)
