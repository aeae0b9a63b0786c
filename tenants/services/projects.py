"""The tree of projects: made below another, renamed, archived."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from ports import ids
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused, Stale

DEEPEST = 8


class NameTaken(Refused):
    code, title = "name-taken", "This name is taken"


class TreeRefused(Refused):
    code, title = "project-tree", "The tree of projects does not allow this"


def _taken(name: str) -> NameTaken:
    return NameTaken(f"There is already a project {name} beside it.", fix="Choose another name.")


@transaction.atomic
def create(*, parent: Project, name: str, actor: Actor, now: datetime) -> Project:
    """Make a project below another."""
    # Locked, so that nobody archives the parent at the same moment.
    parent = Project.objects.select_for_update(of=("self",)).get(pk=parent.pk)
    if parent.archived_at is not None:
        raise TreeRefused(f"{parent.name} is archived.", fix="Choose a project that is open.")
    if len(parent.path) >= DEEPEST:
        raise TreeRefused(f"Projects go {DEEPEST} deep at most.", fix="Make it higher up in the tree.")
    project = Project(pk=ids.new("prj"), tenant_id=parent.tenant_id, parent=parent, name=name, created_at=now)
    project.path = [*parent.path, project.pk]
    try:
        with transaction.atomic():
            project.save(force_insert=True)
    except IntegrityError:
        raise _taken(name) from None
    _record("project.create", project, actor=actor, now=now, parent=parent.pk)
    return project


@transaction.atomic
def rename(project: Project, *, name: str, actor: Actor, now: datetime) -> Project:
    """Give a project another name."""
    if name == project.name:
        return project
    before = project.name
    try:
        with transaction.atomic():
            _update(project, name=name)
    except IntegrityError:
        raise _taken(name) from None
    _record("project.rename", project, actor=actor, now=now, before=before)
    return project


@transaction.atomic
def archive(project: Project, *, actor: Actor, now: datetime) -> Project:
    """Close a project to new leases and children; what runs in it ends in its own time."""
    if project.archived_at is not None:
        return project
    Project.objects.select_for_update(of=("self",)).get(pk=project.pk)
    if project.parent_id is None:
        raise TreeRefused("The root project stays as long as its tenant.", fix="Archive a project below it.")
    if project.children.filter(archived_at=None).exists():
        raise TreeRefused(
            f"{project.name} has open projects below it.", fix="Archive those first, from the leaves up."
        )
    _update(project, archived_at=now)
    _record("project.archive", project, actor=actor, now=now)
    return project


def _update(project: Project, **changes: object) -> None:
    moved = Project.objects.filter(pk=project.pk, version=project.version).update(
        version=F("version") + 1, **changes
    )
    if not moved:
        raise Stale("The project was changed in the meantime.", fix="Read it again, then change it.")
    for field, value in changes.items():
        setattr(project, field, value)
    project.version += 1


def _record(action: str, project: Project, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=project.tenant_id,
        subject_id=project.pk,
        subject_label=project.name,
        **detail,
    )
