"""API of saved secrets: create, list, replace the value, delete.

No response contains a value.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.workloads.registry_logins import MAX_SERVER_LENGTH, MAX_USERNAME_LENGTH
from broker.domain.workloads.secret_variables import MAX_NAME_LENGTH, MAX_VALUE_BYTES
from broker.models import Secret, SecretKind
from broker.services.secrets import registry_secrets, secret_store
from web.api.base_views import ETagViewSet, TenantViewSet, needs, validated_body
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

LOGIN_FIELDS = ("username", "password")


class SecretValueField(serializers.CharField):
    """Value of a secret: any text, exactly as sent; read by requests only."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_length=MAX_VALUE_BYTES,
            trim_whitespace=False,
            write_only=True,
            help_text=f"At most {MAX_VALUE_BYTES:,} bytes of UTF-8. No response contains it.",
            **options,
        )

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class SecretCreate(StrictSerializer):
    """Request body of a secret."""

    name = serializers.CharField(
        max_length=MAX_NAME_LENGTH, help_text="Like an environment variable, such as `HF_TOKEN`."
    )
    project = serializers.CharField(max_length=40)
    kind = serializers.ChoiceField(
        choices=SecretKind.choices,
        default=SecretKind.VARIABLE,
        help_text="`variable` with a `value`, or `registry` with `registry`, `username` and `password`.",
    )
    value = SecretValueField(required=False)
    registry = serializers.CharField(
        max_length=MAX_SERVER_LENGTH, required=False, help_text="Host of the image registry, such as `ghcr.io`."
    )
    username = serializers.CharField(
        max_length=MAX_USERNAME_LENGTH, trim_whitespace=False, write_only=True, required=False
    )
    password = SecretValueField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly the fields of its kind."""
        return require_fields(
            attrs, ("registry", *LOGIN_FIELDS) if attrs["kind"] == SecretKind.REGISTRY else ("value",)
        )


class SecretChange(StrictSerializer):
    value = SecretValueField(required=False)
    username = serializers.CharField(
        max_length=MAX_USERNAME_LENGTH, trim_whitespace=False, write_only=True, required=False
    )
    password = SecretValueField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require either a value or a user name with its password."""
        return require_fields(attrs, ("value",) if "value" in attrs else LOGIN_FIELDS)


def require_fields(attrs: dict[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    """Return the body, or raise ValidationError for a missing or superfluous field."""
    errors = {name: ["This field is required."] for name in wanted if name not in attrs}
    others = (name for name in ("value", "registry", *LOGIN_FIELDS) if name in attrs and name not in wanted)
    errors |= {name: ["A secret of this kind does not have it. Leave it out."] for name in others}
    if errors:
        raise serializers.ValidationError(errors)
    return attrs


class SecretOut(serializers.ModelSerializer[Secret]):
    project = serializers.CharField(source="project_id")
    updated_by = serializers.CharField(source="updated_by_label")

    class Meta:
        model = Secret
        fields = ("id", "name", "project", "kind", "registry", "created_at", "updated_at", "updated_by", "version")


class SecretViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Values that leases of a project receive as environment variables, and logins of image registries.

    They are stored encrypted and never shown again. A lease names secrets in `secrets` of its request and a registry's
    login in `pull_secret`, and keeps the values of that moment until it ends or is started again.
    """

    serializer_class = SecretOut
    rows = Secret.objects.select_related("project")
    project_field = "project"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id")
    filters = {
        "kind": QueryFilter("kind", choices=tuple(SecretKind.values)),
        "project": QueryFilter("project_id"),
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
    }
    actions_needed = needs("secrets.read", "list", "retrieve") | needs(
        "secrets.write", "create", "partial_update", "destroy"
    )

    @extend_schema(request=SecretCreate, responses={201: SecretOut})
    @idempotent(secret=("value", "password"))
    def create(self, request_: Request) -> Response:
        """Store a secret, encrypted."""
        wanted: dict[str, Any] = validated_body(SecretCreate, request_)
        project = self.project_for(wanted.pop("project"))
        create = (
            registry_secrets.create_registry_secret
            if wanted.pop("kind") == SecretKind.REGISTRY
            else secret_store.create_secret
        )
        secret = create(project=project, **self.by, **wanted)
        return self.tagged(secret, status=201, Location=f"/api/v1/secrets/{secret.pk}")

    @extend_schema(request=SecretChange, responses={200: SecretOut})
    def partial_update(self, request_: Request, pk: str) -> Response:
        """Replace its value or login; leases that are not over keep theirs."""
        secret = self.get_object()
        self.allow(secret.project.path)
        wanted = validated_body(SecretChange, request_)
        if "value" in wanted:
            return self.tagged(secret_store.replace_value(secret, wanted["value"], **self.by))
        return self.tagged(registry_secrets.replace_login(secret, **wanted, **self.by))

    def destroy(self, request_: Request, pk: str) -> Response:
        """Delete it with all its values; refused while a lease uses it."""
        secret = self.get_object()
        self.allow(secret.project.path)
        secret_store.delete_secret(secret, **self.by)
        return Response(status=204)
