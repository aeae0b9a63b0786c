"""Choice of a saved template at launch, and the copy that a lease keeps."""

from typing import Any

from broker.domain.workloads.template_contents import contents_as_json
from broker.models import LaunchTemplate, OperatorTemplate, SavedTemplate
from tenants.models import Project
from tenants.services.errors import Fix, ObjectNotFound


def find_template(template_id: str, *, project: Project) -> SavedTemplate:
    """Return a template of the project or of the operators, or raise ObjectNotFound."""
    own = LaunchTemplate.objects.filter(pk=template_id, project=project).select_related("pull_secret").first()
    found = own or OperatorTemplate.objects.filter(pk=template_id).first()
    if found is None:
        raise ObjectNotFound(
            "The template does not exist in this project.",
            fix=Fix("Choose one from the list of templates.", "GET", "/api/v1/templates"),
        )
    return found


def launchable_templates(project: Project) -> list[SavedTemplate]:
    """Return the project's own templates, then those of the operators."""
    own = LaunchTemplate.objects.filter(project=project).select_related("pull_secret").order_by("name")
    return [*own, *OperatorTemplate.objects.order_by("name")]


def template_copy(template: SavedTemplate) -> dict[str, Any]:
    """Return what a lease keeps of a template."""
    return {
        "id": template.pk,
        "version": template.version,
        "name": template.name,
        "icon": template.icon,
        "contents": contents_as_json(template.contents),
    }
