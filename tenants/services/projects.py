"""Project tree: creating, renaming and archiving projects."""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from ports import ids
from ports.postgres import sql_statements
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError, ProjectArchived, StaleVersion

MAX_DEPTH = 8
# Waits for an archiving in progress; kept until the transaction ends.
LOCK_OPEN_SQL = "SELECT archived_at IS NULL FROM tenants_project WHERE id = %s FOR KEY SHARE"


class NameTaken(ProblemError):
    code, title = "name-taken", "This name is taken"


class ProjectTreeError(ProblemError):
    code, title = "project-tree", "The project hierarchy does not allow this"


def _name_taken(name: str) -> NameTaken:
    return NameTaken(f"A project {name} already exists there.", fix="Choose another name.")


@transaction.atomic
def create(*, parent: Project, name: str, actor: Actor, now: datetime) -> Project:
    """Create a project below another."""
    # Locked against concurrent archiving of the parent.
    parent = Project.objects.select_for_update(of=("self",)).get(pk=parent.pk)
    if parent.archived_at is not None:
        raise ProjectArchived(parent.name)
    if len(parent.path) >= MAX_DEPTH:
        raise ProjectTreeError(
            f"Projects can be nested at most {MAX_DEPTH} levels deep.", fix="Create it at a higher level."
        )
    project = Project(pk=ids.new("prj"), tenant_id=parent.tenant_id, parent=parent, name=name, created_at=now)
    project.path = [*parent.path, project.pk]
    try:
        with transaction.atomic():
            project.save(force_insert=True)
    except IntegrityError:
        raise _name_taken(name) from None
    audit.record("project.create", project, actor=actor, now=now, parent=parent.pk)
    return project


@transaction.atomic
def rename(project: Project, *, name: str, actor: Actor, now: datetime) -> Project:
    """Rename a project."""
    if name == project.name:
        return project
    before = project.name
    try:
        with transaction.atomic():
            _update(project, name=name)
    except IntegrityError:
        raise _name_taken(name) from None
    audit.record("project.rename", project, actor=actor, now=now, before=before)
    return project


@transaction.atomic
def archive(project: Project, *, actor: Actor, now: datetime) -> Project:
    """Close a project to all that begins to cost.

    Active leases go on until their end.
    """
    if project.archived_at is not None:
        return project
    Project.objects.select_for_update(of=("self",)).get(pk=project.pk)
    if project.parent_id is None:
        raise ProjectTreeError("The root project cannot be archived.", fix="Archive a project below it.")
    if project.children.filter(archived_at=None).exists():
        raise ProjectTreeError(
            f"{project.name} has open projects below it.", fix="Archive them first, starting with the lowest level."
        )
    _update(project, archived_at=now)
    audit.record("project.archive", project, actor=actor, now=now)
    return project


@transaction.atomic
def unarchive(project: Project, *, actor: Actor, now: datetime) -> Project:
    """Open an archived project again; what was released stays released."""
    if project.archived_at is None:
        return project
    parent = Project.objects.select_for_update(of=("self",)).get(pk=project.parent_id)
    if parent.archived_at is not None:
        raise ProjectTreeError(f"{parent.name} above it is archived.", fix=f"Unarchive {parent.name} first.")
    _update(project, archived_at=None)
    audit.record("project.unarchive", project, actor=actor, now=now)
    return project


def is_open(project_id: str) -> bool:
    """Return whether a project is not archived."""
    return Project.objects.open().filter(pk=project_id).exists()


def require_open(project: Project) -> None:
    """Refuse what costs money in an archived project; it stays open until the transaction ends."""
    ((is_open,),) = sql_statements.fetch_rows(LOCK_OPEN_SQL, [project.pk])
    if not is_open:
        raise ProjectArchived(project.name)


def _update(project: Project, **changes: object) -> None:
    moved = Project.objects.filter(pk=project.pk, version=project.version).update(version=F("version") + 1, **changes)
    if not moved:
        raise StaleVersion("The project was changed in the meantime.", fix="Reload it, then change it.")
    for field, value in changes.items():
        setattr(project, field, value)
    project.version += 1
