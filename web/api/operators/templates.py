"""Operators' API of the launch templates that every tenant can launch."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.workloads.template_validation import MAX_NAME_LENGTH
from broker.models import OperatorTemplate
from broker.services.launch_templates import template_store
from tenants.services.errors import InvalidValue
from web.api.base_views import validated_body
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.serializer_fields import StrictSerializer
from web.api.templates import OperatorTemplateOut, TemplateBody


class TemplateDeletion(StrictSerializer):
    name = serializers.CharField(max_length=MAX_NAME_LENGTH, help_text="The template's name, to confirm its deletion.")


class OperatorTemplateViewSet(CrossTenantViewSet):
    """Templates on every tenant's launch page; their images are public."""

    serializer_class, rows, audit_action = OperatorTemplateOut, OperatorTemplate.objects.all(), "templates"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id", "image")

    @OperatorAct(TemplateBody)
    def publish(self, wanted: dict[str, Any]) -> OperatorTemplate:
        """Create a template, or replace that of the same name."""
        template = OperatorTemplate.objects.filter(name=wanted["name"].strip()).first()
        if template is None:
            return template_store.create_operator_template(values=wanted, **self.by)
        return template_store.change_operator_template(template, wanted, **self.by)

    @extend_schema(request=TemplateDeletion, responses={204: None}, filters=False)
    @action(detail=True, methods=["put"])
    def deletion(self, request_: Request, pk: str) -> Response:
        """Delete a template; leases keep what they were launched with."""
        with self.read_scope():
            template = self.find_row()
        if validated_body(TemplateDeletion, request_)["name"] != template.name:
            raise InvalidValue("name", "This is not the template's name.", fix=f"Send {template.name!r} to delete it.")
        template_store.delete_operator_template(template, **self.by)
        return Response(status=204)
