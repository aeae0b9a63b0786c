"""Choice of a saved template at launch, and the copy that a lease keeps."""

from collections.abc import Mapping
from typing import Any

from broker.domain.workloads.template_contents import contents_as_json
from broker.models import LaunchTemplate, OperatorTemplate, SavedTemplate
from broker.models.encrypted_variables import is_unreadable
from broker.services.secrets import variable_encryption
from tenants.models import Project
from tenants.services.errors import Fix, InvalidValue, ObjectNotFound


def find_template(template_id: str, *, project: Project) -> SavedTemplate:
    """Return a template of the project or of the operators, or raise ObjectNotFound."""
    own = LaunchTemplate.objects.filter(pk=template_id, project=project).select_related("pull_secret").first()
    found = own or OperatorTemplate.objects.filter(pk=template_id).first()
    if found is None:
        raise ObjectNotFound(
            "The template does not exist in this project.",
            fix=Fix("Choose one from the list of templates.", "GET", "/api/v1/templates"),
        )
    if is_unreadable(found.env):
        raise InvalidValue(
            "template_id",
            f"The variables of {found.name} cannot be read: {variable_encryption.NO_KEY}.",
            fix="Enter them again in the template, or ask the operators of this installation.",
        )
    return found


def launchable_templates(project: Project) -> list[SavedTemplate]:
    """Return the project's own templates, then those of the operators."""
    own = LaunchTemplate.objects.filter(project=project).select_related("pull_secret").order_by("name")
    return [*own, *OperatorTemplate.objects.order_by("name")]


def template_copy(template: SavedTemplate, *, lease_id: str) -> dict[str, Any]:
    """Return what a lease keeps of a template; its variables are encrypted."""
    contents = contents_as_json(template.contents)
    contents["env"] = variable_encryption.encrypt_variables(contents["env"], owner_id=lease_id)
    return {
        "id": template.pk,
        "version": template.version,
        "name": template.name,
        "icon": template.icon,
        "contents": contents,
    }


def with_variables(copy: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return a lease's copy of a template with other values of its variables."""
    return {**copy, "contents": {**copy["contents"], "env": dict(env)}} if copy else copy
