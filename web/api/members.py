"""API of members, invitations, service accounts and roles."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.domain.roles import ALLOWED, Role
from tenants.models import Invitation, Member, Project, ServiceAccount
from tenants.services import invitations, members, service_accounts
from web.api.base_views import ETagViewSet, TenantViewSet, complete_page, needs, validated_body
from web.api.lease_serializers import page_of
from web.api.tenant_serializers import (
    CreatedInvitationOut,
    InvitationCreate,
    InvitationOut,
    MemberOut,
    RoleChange,
    RoleOut,
    ServiceAccountCreate,
    ServiceAccountOut,
)
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class RoleHolderViewSet(TenantViewSet):
    """Base viewset of members, invitations and service accounts: a role on a tenant or project."""

    project_field = "project"
    sorts = ("-id",)

    def node_for(self, project_id: str | None) -> Project | None:
        """Return the project named in the body.

        None is the whole tenant, and needs the action on all of it.
        """
        if project_id is None:
            self.allow()
            return None
        return self.project_for(project_id)

    def who(self) -> dict[str, Any]:
        return {"grants": self.request.roles, **self.by}


class MemberViewSet(ETagViewSet, ListModelMixin, RoleHolderViewSet):
    """Members of the tenant, with their role and the project it applies to."""

    serializer_class = MemberOut
    rows = Member.objects.select_related("user", "project", "tenant")
    filters = {"role": QueryFilter("role", choices=tuple(Role)), "project": QueryFilter("project_id")}
    search_in = ("user__email", "user__name")
    actions_needed = needs("members.read", "list", "retrieve", "destroy") | needs("members.write", "partial_update")

    @extend_schema(request=RoleChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a member's role."""
        member = self.get_object()
        self.allow(members.node_path(member.project))
        wanted = validated_body(RoleChange, request)
        return self.tagged(members.change_role(member, role=Role(wanted["role"]), **self.who()))

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a member, or leave; with the last membership their tokens are revoked."""
        member = self.get_object()  # anybody may leave; removing others needs more
        if member.user_id != self.request.actor.id:
            self.allow(members.node_path(member.project), action="members.write")
        members.remove(member, **self.who())
        return Response(status=204)


class InvitationViewSet(ListModelMixin, RoleHolderViewSet):
    """Invitations; the link is shown once, works once and expires after a week."""

    serializer_class = InvitationOut
    rows = Invitation.objects.select_related("project", "tenant")
    actions_needed = needs("invitations.read", "list", "retrieve") | needs("members.write", "create", "destroy")

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one invitation."""
        return Response(InvitationOut(self.get_object()).data)

    @extend_schema(request=InvitationCreate, responses={201: CreatedInvitationOut})
    @idempotent(hide=("url",))
    def create(self, request: Request) -> Response:
        """Invite somebody by e-mail; the response contains the link."""
        wanted = validated_body(InvitationCreate, request)
        invitation, secret = invitations.invite(
            tenant=self.request.tenant,
            email=wanted["email"],
            role=Role(wanted["role"]),
            project=self.node_for(wanted["project"]),
            **self.who(),
        )
        url = f"{settings.PUBLIC_URL}/join/{secret}/"
        return Response({**InvitationOut(invitation).data, "url": url}, status=201)

    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke an invitation."""
        invitation = self.get_object()
        self.allow(members.node_path(invitation.project))
        invitations.revoke(invitation, **self.by)
        return Response(status=204)


class ServiceAccountViewSet(ETagViewSet, ListModelMixin, RoleHolderViewSet):
    """Service accounts: non-human members that authenticate with tokens only."""

    serializer_class = ServiceAccountOut
    rows = ServiceAccount.objects.select_related("project", "tenant")
    filters = {"closed": QueryFilter("closed_at__isnull", "flag_not"), "project": QueryFilter("project_id")}
    search_in = ("name",)
    actions_needed = needs("members.read", "list", "retrieve") | needs(
        "members.write", "create", "partial_update", "destroy"
    )

    @extend_schema(request=ServiceAccountCreate, responses={201: ServiceAccountOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Create a service account."""
        wanted = validated_body(ServiceAccountCreate, request)
        account = service_accounts.create(
            tenant=self.request.tenant,
            name=wanted["name"],
            role=Role(wanted["role"]),
            project=self.node_for(wanted["project"]),
            **self.who(),
        )
        return self.tagged(account, status=201, Location=f"/api/v1/service-accounts/{account.pk}")

    @extend_schema(request=RoleChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a service account's role."""
        account = self.get_object()
        self.allow(members.node_path(account.project))
        wanted = validated_body(RoleChange, request)
        return self.tagged(service_accounts.change_role(account, role=Role(wanted["role"]), **self.who()))

    def destroy(self, request: Request, pk: str) -> Response:
        """Close a service account and revoke all its tokens."""
        account = self.get_object()
        self.allow(members.node_path(account.project))
        service_accounts.close(account, **self.who())
        return Response(status=204)


class RoleViewSet(TenantViewSet):
    """The five roles, in words and with the actions each allows."""

    serializer_class = RoleOut
    pagination_class = None
    filter_backends = []
    actions_needed = needs("tenant.read", "list")

    @extend_schema(responses=page_of(RoleOut, "RolePage"))
    def list(self, request: Request) -> Response:
        """Return every role."""
        rows = [{"role": role, "actions": sorted(ALLOWED[role])} for role in Role]
        return complete_page(RoleOut(rows, many=True).data)
