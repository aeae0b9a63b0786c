"""Operators' API of the launch templates that every tenant can launch."""

from typing import Any

from broker.models import OperatorTemplate
from broker.services.launch_templates import template_store
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.templates import OperatorTemplateOut, TemplateBody


class OperatorTemplateViewSet(CrossTenantViewSet):
    """Templates on every tenant's launch page; their images are public."""

    area = "offerings"
    serializer_class, rows, audit_action = OperatorTemplateOut, OperatorTemplate.objects.all(), "templates"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id", "image")

    @OperatorAct(TemplateBody)
    def create(self, wanted: dict[str, Any]) -> OperatorTemplate:
        """Create a template."""
        return template_store.create_operator_template(values=wanted, **self.by)

    @OperatorAct(TemplateBody)
    def partial_update(self, template: OperatorTemplate, wanted: dict[str, Any]) -> OperatorTemplate:
        """Change a template; leases keep what they were launched with."""
        return template_store.change_operator_template(template, wanted, **self.by)

    @OperatorAct()
    def destroy(self, template: OperatorTemplate) -> None:
        """Delete a template; leases keep what they were launched with."""
        template_store.delete_operator_template(template, **self.by)
