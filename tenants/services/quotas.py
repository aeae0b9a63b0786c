"""Quotas on the project tree.

Operators set those of the root project, the tenant sets those below.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest

from ports import clock
from tenants.domain.roles import RoleGrants
from tenants.models import Project, Quota, QuotaKind
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import NotAllowed

OPERATOR_KIND = "staff"


@dataclass(frozen=True)
class RemainingQuota:
    """Remaining quota of one kind for a project; the tightest quota on its path decides."""

    kind: str
    project_id: str
    limit: int
    used: int

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)


def _require_quota_owner(project: Project, actor: Actor) -> None:
    if project.parent_id is None and actor.kind not in (OPERATOR_KIND, "system"):
        raise NotAllowed(
            "The quotas of the root project are set by the operators of this installation.",
            fix="Ask them, or set quotas on the projects below.",
        )


def may_set(grants: RoleGrants, project: Project) -> bool:
    """Return whether the caller may set this project's quota: rights above it are needed.

    If the project's own admins could set it, it would be no limit.
    """
    return grants.may("quotas.write", project.path[:-1])


def require_rights_above(grants: RoleGrants, project: Project) -> None:
    """Refuse setting a project's quota to those with rights only in the project itself.

    The root project's quota is refused elsewhere, in words of its own.
    """
    if project.parent_id is not None and not may_set(grants, project):
        raise NotAllowed(
            f"The quotas of {project.name} are set by the admins of its parent projects.",
            fix="Ask an owner or admin of the whole tenant, or set quotas on the projects below.",
        )


@transaction.atomic
def set_limit(*, project: Project, kind: QuotaKind, limit: int, actor: Actor, now: datetime) -> Quota:
    """Set a quota; a limit below current use only stops new leases.

    A new quota starts with what is held below it now; one in GPU-hours starts with this month's use so far (a
    database trigger counts it as the row is written).
    """
    _require_quota_owner(project, actor)
    quota, made = Quota.objects.select_for_update(of=("self",)).get_or_create(
        tenant_id=project.tenant_id,
        project=project,
        kind=kind,
        defaults={
            "limit": limit,
            "soft_limit": limit,
            "window_start": clock.month_start(now) if kind == QuotaKind.GPU_SECONDS else None,
        },
    )
    if made:
        quota.refresh_from_db(fields=["used", "limit"])
    before = None if made else quota.soft_limit
    if not made and before != limit:
        # The check constraint uses `limit`, which may not be below use; grants are tested against `soft_limit`.
        Quota.objects.filter(pk=quota.pk).update(
            soft_limit=limit, limit=Greatest(limit, F("used")), version=F("version") + 1
        )
        quota.refresh_from_db()
    if before != limit:
        _record("quota.set", quota, actor=actor, now=now, before=before, after=limit)
    return quota


def set_or_lift(*, project: Project, kind: QuotaKind, limit: int | None, actor: Actor, now: datetime) -> None:
    """Set a quota, or lift it if there is no limit."""
    if limit is not None:
        set_limit(project=project, kind=kind, limit=limit, actor=actor, now=now)
    elif quota := Quota.objects.select_related("project").filter(project=project, kind=kind).first():
        remove(quota, actor=actor, now=now)


@transaction.atomic
def remove(quota: Quota, *, actor: Actor, now: datetime) -> None:
    """Remove a quota; those above it still apply."""
    _require_quota_owner(quota.project, actor)
    _record("quota.remove", quota, actor=actor, now=now, before=quota.soft_limit)
    quota.delete()


def remaining_quotas(projects: Iterable[Project], *, now: datetime) -> dict[str, list[RemainingQuota]]:
    """Return, per project, the remaining quota of each kind limited on its path."""
    wanted = list(projects)
    nodes = {node for project in wanted for node in project.path}
    by_node: dict[str, list[Quota]] = {}
    for quota in Quota.objects.filter(project_id__in=nodes).order_by("kind", "id"):
        by_node.setdefault(quota.project_id, []).append(quota)
    rooms: dict[str, list[RemainingQuota]] = {}
    for project in wanted:
        tightest: dict[str, RemainingQuota] = {}
        for quota in (q for node in project.path for q in by_node.get(node, [])):
            here = RemainingQuota(quota.kind, quota.project_id, quota.soft_limit, quota.used_at(now))
            if quota.kind not in tightest or here.free < tightest[quota.kind].free:
                tightest[quota.kind] = here
        rooms[project.pk] = list(tightest.values())
    return rooms


def _record(action: str, quota: Quota, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action, quota, f"{quota.kind} of {quota.project.name}", actor=actor, now=now, project=quota.project_id, **detail
    )
