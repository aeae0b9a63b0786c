"""Creation, change and deletion of launch templates; leases keep their own copy."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from broker.domain.workloads.template_validation import (
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    find_template_faults,
    icon_fault,
)
from broker.domain.workloads.validation import WorkloadFault
from broker.models import LaunchTemplate, OperatorTemplate, SavedTemplate
from broker.models.encrypted_variables import is_unreadable
from broker.models.launch_templates import SHAPES
from broker.services.launch_templates.template_errors import TemplateNameTaken, TooManyTemplates, refuse_faults
from broker.services.secrets import registry_secrets, variable_encryption
from tenants.domain.single_line_text import has_control, is_name
from tenants.models import Project
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound

MAX_TEMPLATES = 30  # per project, and of the operators: the launch page lists them all
TEXT_COLUMNS = ("name", "description", "icon", "shape", "image", "entrypoint", "command")
COLUMNS = (*TEXT_COLUMNS, "ports", "env", "mount_path", "needs_volume", "readiness_path", "token_variable")
TemplateT = TypeVar("TemplateT", bound=SavedTemplate)


@transaction.atomic
def create_template(*, project: Project, values: Mapping[str, Any], actor: Actor, now: datetime) -> LaunchTemplate:
    """Save a template of a project; `values` are its columns."""
    if LaunchTemplate.objects.filter(project=project).count() >= MAX_TEMPLATES:
        raise TooManyTemplates(
            f"A project can have at most {MAX_TEMPLATES} templates.", fix="Delete unused ones first."
        )
    template = LaunchTemplate(tenant_id=project.tenant_id, project=project)
    _set_created(template, values, actor=actor, now=now)
    _set_pull_secret(template, values)
    _insert(template)
    _record_audit("template.create", template, actor=actor, now=now)
    return template


@transaction.atomic
def change_template(
    template: LaunchTemplate, values: Mapping[str, Any], *, actor: Actor, now: datetime
) -> LaunchTemplate:
    """Change some columns of a project's template; leases keep what they were launched with."""
    template = _lock(LaunchTemplate, template)
    _set_changed(template, values, actor=actor, now=now)
    _set_pull_secret(template, values)
    _update(template)
    _record_audit("template.change", template, actor=actor, now=now)
    return template


@transaction.atomic
def delete_template(template: LaunchTemplate, *, actor: Actor, now: datetime) -> None:
    """Delete a project's template; leases keep what they were launched with."""
    template = _lock(LaunchTemplate, template)
    _record_audit("template.delete", template, actor=actor, now=now)
    LaunchTemplate.objects.filter(pk=template.pk).delete()


@transaction.atomic
def create_operator_template(*, values: Mapping[str, Any], actor: Actor, now: datetime) -> OperatorTemplate:
    """Save a template that every tenant can launch."""
    if OperatorTemplate.objects.count() >= MAX_TEMPLATES:
        raise TooManyTemplates(
            f"There can be at most {MAX_TEMPLATES} templates of operators.", fix="Delete unused ones first."
        )
    template = OperatorTemplate()
    _set_created(template, values, actor=actor, now=now)
    _insert(template)
    audit.record("operator_template.create", template, actor=actor, now=now, version=template.version)
    return template


@transaction.atomic
def change_operator_template(
    template: OperatorTemplate, values: Mapping[str, Any], *, actor: Actor, now: datetime
) -> OperatorTemplate:
    """Change some columns of an operators' template."""
    template = _lock(OperatorTemplate, template)
    _set_changed(template, values, actor=actor, now=now)
    _update(template)
    audit.record("operator_template.change", template, actor=actor, now=now, version=template.version)
    return template


@transaction.atomic
def delete_operator_template(template: OperatorTemplate, *, actor: Actor, now: datetime) -> None:
    """Delete an operators' template."""
    template = _lock(OperatorTemplate, template)
    audit.record("operator_template.delete", template, actor=actor, now=now, version=template.version)
    OperatorTemplate.objects.filter(pk=template.pk).delete()


def _set_created(template: SavedTemplate, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    template.created_at, template.created_by, template.created_by_label = now, actor.id, actor.label
    template.updated_at, template.updated_by, template.updated_by_label = now, actor.id, actor.label
    _set_columns(template, values)


def _set_changed(template: SavedTemplate, values: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    template.version += 1
    template.updated_at, template.updated_by, template.updated_by_label = now, actor.id, actor.label
    if "env" not in values and is_unreadable(template.env):
        raise InvalidValue(
            "env", f"The variables cannot be read: {variable_encryption.NO_KEY}.", fix="Enter them again."
        )
    _set_columns(template, values)


def _set_columns(template: SavedTemplate, values: Mapping[str, Any]) -> None:
    """Set the given columns, and refuse a template that could not be launched."""
    texts = {name: values[name].strip() for name in TEXT_COLUMNS if name in values}
    template.set_columns({name: values[name] for name in COLUMNS if name in values} | texts)
    if template.shape not in SHAPES:
        raise InvalidValue(
            "shape", f"The kind {template.shape[:20]!r} does not exist.", fix=f"Use one of {', '.join(SHAPES)}."
        )
    if faults := (*_label_faults(template), *find_template_faults(template.contents)):
        refuse_faults(faults)


def _label_faults(template: SavedTemplate) -> list[WorkloadFault]:
    faults = []
    if not is_name(template.name) or len(template.name) > MAX_NAME_LENGTH:
        text = f"A name must have 1 to {MAX_NAME_LENGTH} characters without control or invisible characters."
        faults.append(WorkloadFault("name", text, "Enter another name."))
    if len(template.description) > MAX_DESCRIPTION_LENGTH or has_control(template.description):
        text = f"A description is one line of at most {MAX_DESCRIPTION_LENGTH} characters."
        faults.append(WorkloadFault("description", text, "Shorten it."))
    if text := icon_fault(template.icon):
        faults.append(WorkloadFault("icon", text, "Choose one of the listed icons."))
    return faults


def _set_pull_secret(template: LaunchTemplate, values: Mapping[str, Any]) -> None:
    """Set the login that pulls its image, and check that it is for that registry."""
    if "pull_secret" in values:
        chosen = values["pull_secret"]
        template.pull_secret = (
            registry_secrets.find_registry_secret(chosen, project=template.project) if chosen else None
        )
    if template.pull_secret is not None:
        registry_secrets.check_login_matches(template.pull_secret, template.image)


def _lock(kind: type[TemplateT], template: TemplateT) -> TemplateT:
    """Lock a template and read it again; raise ObjectNotFound if it was deleted."""
    found = kind._default_manager.select_for_update(of=("self",)).filter(pk=template.pk).first()
    if found is None:
        raise ObjectNotFound("This template was deleted.", fix="Choose one from the list of templates.")
    return found


def _insert(template: SavedTemplate) -> None:
    try:
        with transaction.atomic():
            template.save(force_insert=True)
    except IntegrityError:
        raise _name_taken(template) from None


def _update(template: SavedTemplate) -> None:
    try:
        with transaction.atomic():
            template.save()
    except IntegrityError:
        raise _name_taken(template) from None


def _name_taken(template: SavedTemplate) -> TemplateNameTaken:
    return TemplateNameTaken(f"There is a template {template.name} already.", fix="Choose another name.")


def _record_audit(action: str, template: LaunchTemplate, *, actor: Actor, now: datetime) -> None:
    audit.record(action, template, actor=actor, now=now, project=template.project_id, version=template.version)
