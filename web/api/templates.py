"""API of launch templates: those of projects, and the operators' to read."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.workloads.template_contents import ICONS
from broker.domain.workloads.template_validation import (
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PATH_LENGTH,
    MAX_PORT_NAME_LENGTH,
    MAX_PORTS,
)
from broker.domain.workloads.templates import HOME, WorkloadShape
from broker.domain.workloads.validation import LONGEST_COMMAND, LONGEST_NAME
from broker.models import LaunchTemplate, OperatorTemplate
from broker.services.launch_templates import template_store
from web.api.base_views import ETagViewSet, TenantViewSet, complete_page, needs, validated_body
from web.api.lease_serializers import EnvironmentField, PlainTextField, page_of
from web.api.serializer_fields import NameField, StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

SHAPES = [each.value for each in WorkloadShape]
CONTENT_FIELDS = ("id", "name", "description", "icon", "shape", "image", "entrypoint", "command", "ports", "env",
                  "mount_path", "needs_volume", "readiness_path", "token_variable", "created_at", "updated_at",
                  "updated_by", "version")  # fmt: skip


class TemplatePort(StrictSerializer):
    """A port of the program; people reach an `http` one by its own TLS link."""

    name = serializers.CharField(max_length=MAX_PORT_NAME_LENGTH)
    port = serializers.IntegerField(source="number", min_value=1, max_value=65535)
    http = serializers.BooleanField(default=True)


class TemplateBody(StrictSerializer):
    """What a template runs, and how it is shown on the launch page."""

    name = NameField(max_length=MAX_NAME_LENGTH)
    description = NameField(max_length=MAX_DESCRIPTION_LENGTH, allow_blank=True, default="")
    icon = serializers.ChoiceField(choices=list(ICONS), default=ICONS[0])
    shape = serializers.ChoiceField(
        choices=SHAPES,
        default=WorkloadShape.SESSION.value,
        help_text="`session`; `batch`, which ends with its command; or `service`.",
    )
    image = PlainTextField(max_length=300)
    entrypoint = PlainTextField(
        max_length=LONGEST_COMMAND, allow_blank=True, default="", help_text="Replaces the image's entry point."
    )
    command = PlainTextField(
        max_length=LONGEST_COMMAND,
        allow_blank=True,
        default="",
        help_text="Of a batch: a shell line, unless the lease has its own. Else arguments before those of the lease.",
    )
    ports = TemplatePort(many=True, default=list, help_text=f"At most {MAX_PORTS}.")
    env = EnvironmentField(default=dict, help_text="Plain variables; credentials are refused, see `/secrets`.")
    mount_path = PlainTextField(
        max_length=MAX_PATH_LENGTH, default=HOME, help_text="Of the volume; without one, of scratch storage."
    )
    needs_volume = serializers.BooleanField(default=False)
    readiness_path = PlainTextField(
        max_length=MAX_PATH_LENGTH, allow_blank=True, default="", help_text="Of the first HTTP port."
    )
    token_variable = PlainTextField(
        max_length=LONGEST_NAME,
        allow_blank=True,
        default="",
        help_text="Variable in which the program expects the lease's access token. Without one, whoever knows the"
        " address can use it.",
    )


class TemplateChange(TemplateBody):
    """Fields to change."""

    pull_secret = serializers.CharField(
        max_length=40, allow_blank=True, default="", help_text="Secret with the login of the image's registry."
    )


class TemplateCreate(TemplateChange):
    """Request body of a template."""

    project = serializers.CharField(max_length=40)


class OperatorTemplateOut(serializers.ModelSerializer[OperatorTemplate]):
    """A template that every project can launch."""

    ports = TemplatePort(many=True)
    env = serializers.DictField(child=serializers.CharField())
    updated_by = serializers.SerializerMethodField()

    class Meta:
        model = OperatorTemplate
        fields = CONTENT_FIELDS

    def get_updated_by(self, template: OperatorTemplate) -> str:
        """Return who changed it last; an operator is not named."""
        return "an operator"


class TemplateOut(serializers.ModelSerializer[LaunchTemplate]):
    """A template of a project."""

    project = serializers.CharField(source="project_id")
    pull_secret = serializers.CharField(source="pull_secret_id", allow_null=True)
    ports = TemplatePort(many=True)
    env = serializers.DictField(child=serializers.CharField())
    updated_by = serializers.CharField(source="updated_by_label")

    class Meta:
        model = LaunchTemplate
        fields = (*CONTENT_FIELDS, "project", "pull_secret")


class TemplateViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """What leases of a project can be launched with: `template_id` in their request.

    A lease keeps what its template said at its request.
    """

    serializer_class = TemplateOut
    rows = LaunchTemplate.objects.select_related("project")
    project_field = "project"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id", "image")
    filters = {
        "project": QueryFilter("project_id"),
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
        "shape": QueryFilter("shape", choices=tuple(SHAPES)),
    }
    actions_needed = needs("templates.read", "list", "retrieve", "shared") | needs(
        "templates.write", "create", "partial_update", "destroy"
    )

    @extend_schema(request=TemplateCreate, responses={201: TemplateOut})
    @idempotent(blank=("env",))
    def create(self, request_: Request) -> Response:
        """Save a template of a project; repeated, it returns the names of the variables only."""
        wanted: dict[str, Any] = validated_body(TemplateCreate, request_)
        project = self.project_for(wanted.pop("project"))
        template = template_store.create_template(project=project, values=wanted, **self.by)
        return self.tagged(template, status=201, Location=f"/api/v1/templates/{template.pk}")

    @extend_schema(request=TemplateChange, responses={200: TemplateOut})
    def partial_update(self, request_: Request, pk: str) -> Response:
        """Change it; leases keep what they were launched with."""
        template = self.get_object()
        self.allow(template.project.path)
        wanted = validated_body(TemplateChange, request_, partial=True)
        if "ports" in wanted:  # a change of the ports states them all
            wanted["ports"] = _complete_ports(wanted["ports"])
        return self.tagged(template_store.change_template(template, wanted, **self.by))

    def destroy(self, request_: Request, pk: str) -> Response:
        """Delete it; leases keep what they were launched with."""
        template = self.get_object()
        self.allow(template.project.path)
        template_store.delete_template(template, **self.by)
        return Response(status=204)

    @extend_schema(responses=page_of(OperatorTemplateOut, "SharedTemplatePage"), filters=False)
    @action(detail=False, pagination_class=None)
    def shared(self, request_: Request) -> Response:
        """Return the operators' templates, which every project can launch."""
        found = OperatorTemplate.objects.order_by("name")
        return complete_page(OperatorTemplateOut(found, many=True).data)


def _port_body(stored: Any) -> dict[str, Any]:
    """Return a validated port as its request body."""
    return {"port" if name == "number" else name: value for name, value in stored.items()}


def _complete_ports(ports: Any) -> Any:
    """Return changed ports with their defaults; refuse incomplete ones."""
    try:
        return [TemplatePort().run_validation(_port_body(each)) for each in ports]
    except serializers.ValidationError as error:
        raise serializers.ValidationError({"ports": error.detail}) from None
