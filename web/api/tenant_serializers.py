"""Serializers of tenants, projects, members, tokens and quotas; they check format only."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tenants.domain.roles import ROLE_DESCRIPTIONS, SCOPES, Role
from tenants.models import ApiToken, AuditEvent, Invitation, Member, Project, Quota, QuotaKind, ServiceAccount, Tenant
from tenants.models.members import ROLE_CHOICES
from web.api.serializer_fields import NameField, StrictSerializer

ROLES = ROLE_CHOICES
MAX_SAFE_INTEGER = 2**53 - 1  # largest integer that every JSON parser keeps exact


class IdField(serializers.CharField):
    """Id in our format; whether it exists is not checked here."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, **options)


class TenantOut(serializers.ModelSerializer[Tenant]):
    class Meta:
        model = Tenant
        fields = ("id", "name", "time_zone", "currency", "created_at", "suspended_at", "released_at")


class TenantChange(StrictSerializer):
    name = NameField(required=False)
    time_zone = NameField(max_length=60, required=False)


class ProjectOut(serializers.ModelSerializer[Project]):
    parent = IdField(source="parent_id", allow_null=True)  # type: ignore[assignment]

    class Meta:
        model = Project
        fields = ("id", "name", "parent", "path", "created_at", "archived_at")


class ProjectCreate(StrictSerializer):
    name = NameField()
    parent = IdField()  # type: ignore[assignment]  # DRF sets its own `parent` per instance


class ProjectChange(StrictSerializer):
    name = NameField()


class MemberOut(serializers.ModelSerializer[Member]):
    user = IdField(source="user_id")
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name")
    project = IdField(source="project_id", allow_null=True)

    class Meta:
        model = Member
        fields = ("id", "user", "email", "name", "project", "role", "created_at")


class RoleChange(StrictSerializer):
    role = serializers.ChoiceField(ROLES)


class InvitationOut(serializers.ModelSerializer[Invitation]):
    project = IdField(source="project_id", allow_null=True)

    class Meta:
        model = Invitation
        fields = ("id", "email", "project", "role", "created_at", "expires_at", "accepted_at", "revoked_at")


class CreatedInvitationOut(InvitationOut):
    url = serializers.CharField(help_text="The link; shown only once.")

    class Meta(InvitationOut.Meta):
        fields = (*InvitationOut.Meta.fields, "url")  # type: ignore[assignment]


class InvitationCreate(StrictSerializer):
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(ROLES)
    project = IdField(required=False, allow_null=True, default=None)


class CreatorOut(serializers.Serializer[Any]):
    """Creator of a row, as in the audit log; without an id: the product itself."""

    id = serializers.CharField(source="made_by")
    label = serializers.CharField(source="made_by_label")  # type: ignore[assignment]


class ServiceAccountOut(serializers.ModelSerializer[ServiceAccount]):
    project = IdField(source="project_id", allow_null=True)
    created_by = CreatorOut(source="*", read_only=True)

    class Meta:
        model = ServiceAccount
        fields = ("id", "name", "project", "role", "created_by", "created_at", "closed_at")


class ServiceAccountCreate(StrictSerializer):
    name = NameField()
    role = serializers.ChoiceField(ROLES)
    project = IdField(required=False, allow_null=True, default=None)


class TokenOut(serializers.ModelSerializer[ApiToken]):
    user = IdField(source="user_id", allow_null=True)
    service_account = IdField(source="service_account_id", allow_null=True)
    project = IdField(source="project_id", allow_null=True)
    parent = IdField(  # type: ignore[assignment]  # DRF sets its own per instance
        source="parent_id", allow_null=True, help_text="The token it was created with, and ends with."
    )
    created_by = CreatorOut(source="*", read_only=True)

    class Meta:
        model = ApiToken
        fields = ("id", "name", "prefix", "user", "service_account", "project", "parent", "scopes", "created_by",
                  "created_at", "expires_at", "last_used_at", "revoked_at")  # fmt: skip


class CreatedTokenOut(TokenOut):
    token = serializers.CharField(allow_null=True, help_text="The secret; shown only once.")

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "token")  # type: ignore[assignment]


class TokenCreate(StrictSerializer):
    name = NameField()
    scopes = serializers.ListField(child=serializers.ChoiceField(sorted(SCOPES)), min_length=1, max_length=40)
    expires_at = serializers.DateTimeField()
    project = IdField(required=False, allow_null=True, default=None)
    service_account = IdField(required=False, allow_null=True, default=None)


class QuotaOut(serializers.ModelSerializer[Quota]):
    project = IdField(source="project_id")
    limit = serializers.IntegerField(source="soft_limit")
    unit = serializers.SerializerMethodField()
    used = serializers.SerializerMethodField()
    window_start = serializers.SerializerMethodField()

    class Meta:
        model = Quota
        fields = ("id", "project", "kind", "unit", "limit", "used", "window_start")

    def get_unit(self, quota: Quota) -> str:
        return QUOTA_UNIT_TEXTS[QuotaKind(quota.kind)]

    def get_used(self, quota: Quota) -> int:
        return quota.used_at(self.context["view"].now)

    def get_window_start(self, quota: Quota) -> datetime | None:
        """Return the month it counts, for GPU-hours."""
        return quota.window_at(self.context["view"].now)


QUOTA_UNIT_TEXTS = {
    QuotaKind.UNITS: "milli-units; 1000 is one compute slice",
    QuotaKind.GPU_SECONDS: "milli-unit seconds a month",
    QuotaKind.STORAGE: "GiB of volumes",
    QuotaKind.BURN: "1e-9 currency units an hour",
}


class QuotaCreate(StrictSerializer):
    project = IdField()
    kind = serializers.ChoiceField(QuotaKind.choices)
    limit = serializers.IntegerField(min_value=0, max_value=MAX_SAFE_INTEGER)


class QuotaChange(StrictSerializer):
    limit = serializers.IntegerField(min_value=0, max_value=MAX_SAFE_INTEGER)


class RemainingQuotaOut(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(QuotaKind.choices)
    unit = serializers.SerializerMethodField()
    set_on = IdField(source="project_id", help_text="The project whose quota is the tightest on the path.")
    limit = serializers.IntegerField()
    used = serializers.IntegerField()
    remaining = serializers.IntegerField(source="free")

    def get_unit(self, room: Any) -> str:
        return QUOTA_UNIT_TEXTS[QuotaKind(room.kind)]


class QuotaUsageOut(serializers.Serializer[Any]):
    project = IdField()
    quotas = RemainingQuotaOut(many=True)


class AuditActorOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance


class AuditSubjectOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # DRF sets its own `label` per instance


class AuditEventOut(serializers.ModelSerializer[AuditEvent]):
    actor = serializers.SerializerMethodField()
    subject = serializers.SerializerMethodField()
    details = serializers.JSONField(source="detail")

    class Meta:
        model = AuditEvent
        fields = ("id", "at", "action", "actor", "subject", "details", "request_id")

    @extend_schema_field(AuditActorOut)
    def get_actor(self, event: AuditEvent) -> dict[str, str]:
        return {"kind": event.actor_kind, "id": event.actor_id, "label": event.actor_label}

    @extend_schema_field(AuditSubjectOut)
    def get_subject(self, event: AuditEvent) -> dict[str, str]:
        return {"id": event.subject_id, "label": event.subject_label}


class RoleOut(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)
    description = serializers.SerializerMethodField()
    actions = serializers.ListField(child=serializers.CharField())

    def get_description(self, row: Any) -> str:
        return ROLE_DESCRIPTIONS[Role(row["role"])]


class RoleGrantOut(serializers.Serializer[Any]):
    role = serializers.ChoiceField(ROLES)
    project = serializers.CharField(allow_null=True)


class IdentityOut(serializers.Serializer[Any]):
    id = IdField()
    kind = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    tenant = IdField()
    roles = RoleGrantOut(many=True)
    scopes = serializers.ListField(child=serializers.CharField(), allow_null=True)
