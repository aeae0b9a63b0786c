"""Operators' API of the projects, members and tokens of all tenants; read-only."""

from rest_framework import serializers

from tenants.domain.roles import Role
from tenants.models import ApiToken, Member, Project
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, TenantNamed
from web.api.tenant_serializers import MemberOut, ProjectOut, TokenOut
from web.http.filters import QueryFilter


class OperatorProjectOut(TenantNamed, ProjectOut):
    """A project and its tenant."""


class OperatorProjectViewSet(CrossTenantViewSet):
    """Projects of all tenants, also archived ones."""

    area = "tenants"
    serializer_class, audit_action = OperatorProjectOut, "projects"
    rows = Project.objects.select_related("tenant")
    sorts = ("-id", "id")
    search_in = ("name",)
    filters = TENANT_FILTER | {"open": QueryFilter("archived_at__isnull", "flag")}


class OperatorMemberOut(TenantNamed, MemberOut):
    """A member and its tenant."""

    last_sign_in = serializers.DateTimeField(source="user.last_login", allow_null=True)

    class Meta(MemberOut.Meta):
        fields = (*MemberOut.Meta.fields, "last_sign_in")  # type: ignore[assignment]


class OperatorMemberViewSet(CrossTenantViewSet):
    """Members of all tenants, with their role and the project it applies to."""

    area = "tenants"
    serializer_class, audit_action = OperatorMemberOut, "members"
    rows = Member.objects.select_related("tenant", "user", "project")
    sorts = ("-id", "id")
    search_in = ("user__email", "user__name")
    filters = TENANT_FILTER | {"role": QueryFilter("role", choices=tuple(Role))}


class OperatorTenantTokenOut(TenantNamed, TokenOut):
    """A token and its tenant, never the secret."""


class OperatorTenantTokenViewSet(CrossTenantViewSet):
    """Tokens of all tenants."""

    area = "tenants"
    serializer_class, audit_action = OperatorTenantTokenOut, "tokens"
    rows = ApiToken.objects.select_related("tenant")
    sorts = ("-id", "id")
    search_in = ("name", "prefix")
    filters = TENANT_FILTER | {"revoked": QueryFilter("revoked_at__isnull", "flag_not")}
