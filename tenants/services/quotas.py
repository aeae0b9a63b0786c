"""Ceilings on the project tree. The root's are the operators' word, those below are the tenant's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from ports import database
from tenants.domain.limits import window_of as window_of
from tenants.domain.roles import Grants
from tenants.models import Project, Quota, QuotaKind
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import NotAllowed

OPERATORS = "staff"
HOLD_OFF = "SELECT pg_advisory_xact_lock_shared(1, hashtext(%s::text))"


@dataclass(frozen=True)
class Room:
    """What a project may still take of one kind: the tightest quota on its path decides."""

    kind: str
    project_id: str
    quota_id: str
    limit: int
    used: int

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)


def _must_be_yours(project: Project, actor: Actor) -> None:
    if project.parent_id is None and actor.kind not in (OPERATORS, "system"):
        raise NotAllowed(
            "The quotas of the root project are set by the operators of this installation.",
            fix="Ask them, or set quotas on the projects below.",
        )


def may_set(grants: Grants, project: Project) -> bool:
    """Tell whether one leads more than the project: its own ceiling is set from above, or it would be none."""
    return grants.may("quotas.write", project.path[:-1])


def must_lead_above(grants: Grants, project: Project) -> None:
    """Refuse the ceiling of a project to those who lead it and no more; the root's is refused in words of its own."""
    if project.parent_id is not None and not may_set(grants, project):
        raise NotAllowed(
            f"The quotas of {project.name} are set by those who lead what is above it.",
            fix="Ask an owner or admin of the whole tenant, or set quotas on the projects below.",
        )


def hold_off_new(tenant_id: str) -> None:
    """Let nobody make a new quota of the tenant before this transaction ends; wait for one that is being made.

    A new quota counts what is held at that moment. Whoever takes quota comes here first, before it has locked
    anything, and so is either counted or finds the new quota on its path.
    """
    with database.prepared() as cursor:
        cursor.execute(HOLD_OFF, [tenant_id])


@transaction.atomic
def set_limit(*, project: Project, kind: QuotaKind, limit: int, actor: Actor, now: datetime) -> Quota:
    """Set a ceiling; below what is in use it only stops new leases.

    A quota that is new begins with what is held below it now, and of GPU-hours with what this month has seen
    (the database counts as it is written).
    """
    _must_be_yours(project, actor)
    quota, made = Quota.objects.select_for_update(of=("self",)).get_or_create(
        tenant_id=project.tenant_id,
        project=project,
        kind=kind,
        defaults={
            "limit": limit,
            "soft_limit": limit,
            "window_start": window_of(now) if kind == QuotaKind.GPU_SECONDS else None,
        },
    )
    if made:
        quota.refresh_from_db(fields=["used", "limit"])
    before = None if made else quota.soft_limit
    if not made and before != limit:
        # `limit` is the CHECK's and may never be below use; grants are tested against `soft_limit`.
        Quota.objects.filter(pk=quota.pk).update(
            soft_limit=limit, limit=Greatest(limit, F("used")), version=F("version") + 1
        )
        quota.refresh_from_db()
    if before != limit:
        _record("quota.set", quota, actor=actor, now=now, before=before, after=limit)
    return quota


@transaction.atomic
def remove(quota: Quota, *, actor: Actor, now: datetime) -> None:
    """Take a ceiling away; those above it still hold."""
    _must_be_yours(quota.project, actor)
    _record("quota.remove", quota, actor=actor, now=now, before=quota.soft_limit)
    quota.delete()


def room(projects: Iterable[Project], *, now: datetime) -> dict[str, list[Room]]:
    """Return, for each project, what it may still take of each kind that is limited on its path."""
    wanted = list(projects)
    nodes = {node for project in wanted for node in project.path}
    by_node: dict[str, list[Quota]] = {}
    for quota in Quota.objects.filter(project_id__in=nodes).order_by("kind", "id"):
        by_node.setdefault(quota.project_id, []).append(quota)
    rooms: dict[str, list[Room]] = {}
    for project in wanted:
        tightest: dict[str, Room] = {}
        for quota in (q for node in project.path for q in by_node.get(node, [])):
            here = Room(quota.kind, quota.project_id, quota.pk, quota.soft_limit, quota.used_at(now))
            if quota.kind not in tightest or here.free < tightest[quota.kind].free:
                tightest[quota.kind] = here
        rooms[project.pk] = list(tightest.values())
    return rooms


def _record(action: str, quota: Quota, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=quota.tenant_id,
        subject_id=quota.pk,
        subject_label=f"{quota.kind} of {quota.project.name}",
        project=quota.project_id,
        **detail,
    )
