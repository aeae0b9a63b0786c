"""Shapes of tenants, projects, people, tokens and quotas on the wire: nothing but shape."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from tenants.api.fields import Name, Strict
from tenants.domain.roles import IN_WORDS, SCOPES, Role
from tenants.models import (
    ApiToken,
    AuditEvent,
    Invitation,
    Member,
    Project,
    Quota,
    QuotaKind,
    ServiceAccount,
    Tenant,
)
from tenants.models.members import ROLE_CHOICES

ROLES = ROLE_CHOICES
BIGGEST = 2**53 - 1  # what every JSON reader holds exactly


class Id(serializers.CharField):
    """An id as we print them; whether it exists is not a matter of shape."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, **options)


class TenantOut(serializers.ModelSerializer[Tenant]):
    class Meta:
        model = Tenant
        fields = ("id", "name", "time_zone", "currency", "created_at", "suspended_at")


class TenantChange(Strict):
    name = Name(required=False)
    time_zone = Name(max_length=60, required=False)


class ProjectOut(serializers.ModelSerializer[Project]):
    parent = Id(source="parent_id", allow_null=True)  # type: ignore[assignment]

    class Meta:
        model = Project
        fields = ("id", "name", "parent", "path", "created_at", "archived_at")


class ProjectWanted(Strict):
    name = Name()
    parent = Id()  # type: ignore[assignment]  # DRF's own `parent` is set per instance, past the class


class ProjectChange(Strict):
    name = Name()


class MemberOut(serializers.ModelSerializer[Member]):
    user = Id(source="user_id")
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")
    project = Id(source="project_id", allow_null=True)

    class Meta:
        model = Member
        fields = ("id", "user", "email", "name", "project", "role", "created_at")


class RoleChange(Strict):
    role = serializers.ChoiceField(ROLES)


class InvitationOut(serializers.ModelSerializer[Invitation]):
    project = Id(source="project_id", allow_null=True)

    class Meta:
        model = Invitation
        fields = ("id", "email", "project", "role", "created_at", "expires_at", "accepted_at", "revoked_at")


class InvitationMade(InvitationOut):
    url = serializers.CharField(help_text="The link; shown only now.")

    class Meta(InvitationOut.Meta):
        fields = (*InvitationOut.Meta.fields, "url")  # type: ignore[assignment]


class InvitationWanted(Strict):
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(ROLES)
    project = Id(required=False, allow_null=True, default=None)


class Maker(serializers.Serializer[Any]):
    """Who made it, as the audit trail has them; no id is the product's own."""

    id = serializers.CharField(source="made_by")
    label = serializers.CharField(source="made_by_label")  # type: ignore[assignment]


class ServiceAccountOut(serializers.ModelSerializer[ServiceAccount]):
    project = Id(source="project_id", allow_null=True)
    made_by = Maker(source="*", read_only=True)

    class Meta:
        model = ServiceAccount
        fields = ("id", "name", "project", "role", "made_by", "created_at", "closed_at")


class ServiceAccountWanted(Strict):
    name = Name()
    role = serializers.ChoiceField(ROLES)
    project = Id(required=False, allow_null=True, default=None)


class TokenOut(serializers.ModelSerializer[ApiToken]):
    user = Id(source="user_id", allow_null=True)
    service_account = Id(source="service_account_id", allow_null=True)
    project = Id(source="project_id", allow_null=True)
    made_by = Maker(source="*", read_only=True)

    class Meta:
        model = ApiToken
        fields = (
            "id",
            "name",
            "prefix",
            "user",
            "service_account",
            "project",
            "scopes",
            "made_by",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        )


class TokenMade(TokenOut):
    token = serializers.CharField(allow_null=True, help_text="The secret; shown only now.")

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "token")  # type: ignore[assignment]


class TokenWanted(Strict):
    name = Name()
    scopes = serializers.ListField(child=serializers.ChoiceField(sorted(SCOPES)), min_length=1, max_length=40)
    expires_at = serializers.DateTimeField()
    project = Id(required=False, allow_null=True, default=None)
    service_account = Id(required=False, allow_null=True, default=None)


class QuotaOut(serializers.ModelSerializer[Quota]):
    project = Id(source="project_id")
    limit = serializers.IntegerField(source="soft_limit")
    unit = serializers.SerializerMethodField()
    used = serializers.SerializerMethodField()
    window_start = serializers.SerializerMethodField()

    class Meta:
        model = Quota
        fields = ("id", "project", "kind", "unit", "limit", "used", "window_start")

    def get_unit(self, quota: Quota) -> str:
        return UNITS[QuotaKind(quota.kind)]

    def get_used(self, quota: Quota) -> int:
        return quota.used_at(self.context["view"].now)

    def get_window_start(self, quota: Quota) -> datetime | None:
        """Return the month that it counts, of GPU-hours."""
        return quota.window_at(self.context["view"].now)


UNITS = {
    QuotaKind.UNITS: "milli-units; 1000 is one compute slice",
    QuotaKind.GPU_SECONDS: "milli-unit seconds a month",
    QuotaKind.STORAGE: "GiB of volumes",
    QuotaKind.BURN: "1e-9 currency units an hour",
}


class QuotaWanted(Strict):
    project = Id()
    kind = serializers.ChoiceField(QuotaKind.choices)
    limit = serializers.IntegerField(min_value=0, max_value=BIGGEST)


class QuotaChange(Strict):
    limit = serializers.IntegerField(min_value=0, max_value=BIGGEST)


class RoomOut(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(QuotaKind.choices)
    unit = serializers.SerializerMethodField()
    set_on = Id(source="project_id", help_text="The project whose quota is the tightest on the path.")
    limit = serializers.IntegerField()
    used = serializers.IntegerField()
    free = serializers.IntegerField()

    def get_unit(self, room: Any) -> str:
        return UNITS[QuotaKind(room.kind)]


class QuotaUsageOut(serializers.Serializer[Any]):
    project = Id()
    quotas = RoomOut(many=True)


class AuditOut(serializers.ModelSerializer[AuditEvent]):
    actor = serializers.SerializerMethodField()
    subject = serializers.SerializerMethodField()

    class Meta:
        model = AuditEvent
        fields = ("id", "at", "action", "actor", "subject", "detail", "request_id")

    def get_actor(self, event: AuditEvent) -> dict[str, str]:
        return {"kind": event.actor_kind, "id": event.actor_id, "label": event.actor_label}

    def get_subject(self, event: AuditEvent) -> dict[str, str]:
        return {"id": event.subject_id, "label": event.subject_label}


class RoleOut(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)
    in_words = serializers.SerializerMethodField()
    actions = serializers.ListField(child=serializers.CharField())

    def get_in_words(self, row: Any) -> str:
        return IN_WORDS[Role(row["role"])]


@extend_schema_serializer(many=False)  # one page, though an action called `list` answers it
class RolePage(serializers.Serializer[Any]):
    items = RoleOut(many=True)
    next_cursor = serializers.CharField(allow_null=True)
    total_estimate = serializers.IntegerField()


class GrantOut(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)
    project = serializers.CharField(allow_null=True)


class MeOut(serializers.Serializer[Any]):
    id = Id()
    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    tenant = Id()
    roles = GrantOut(many=True)
    scopes = serializers.ListField(child=serializers.CharField(), allow_null=True)
