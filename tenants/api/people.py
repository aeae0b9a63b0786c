"""Members, invitations and service accounts, and what each role may."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.etag import Etagged
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.serializers import (
    InvitationMade,
    InvitationOut,
    InvitationWanted,
    MemberOut,
    RoleChange,
    RoleOut,
    RolePage,
    ServiceAccountOut,
    ServiceAccountWanted,
)
from tenants.api.views import TenantViewSet, shape
from tenants.domain.roles import ALLOWED, Role
from tenants.models import Invitation, Member, Project, ServiceAccount
from tenants.services import invitations, members, service_accounts


class People(TenantViewSet):
    """What members, invitations and service accounts share: a role on the tenant or on a project."""

    project_field = "project"

    def node_for(self, project_id: str | None) -> Project | None:
        """Return the node named in the body; None, the whole tenant, needs the action on all of it."""
        if project_id is None:
            self.allow()
            return None
        return self.project_for(project_id)

    def who(self) -> dict[str, Any]:
        return {"grants": self.request.roles, "actor": self.request.actor, "now": self.now}


class Members(Etagged, ListModelMixin, People):
    """Who belongs to the tenant, with which role, on which node of the project tree."""

    serializer_class = MemberOut
    filters = {"role": Filter("role", choices=tuple(Role)), "project": Filter("project_id")}
    search_in = ("user__email", "user__name")
    actions_needed = {
        "list": "members.read",
        "retrieve": "members.read",
        "partial_update": "members.write",
        "destroy": "members.read",  # anybody may leave; removing others asks for more below
    }

    def get_queryset(self) -> Any:
        return self.visible(Member.objects.select_related("user", "project", "tenant"))

    @extend_schema(request=RoleChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Give a member another role."""
        member = self.get_object()
        self.allow(members.node(member.project))
        wanted = shape(RoleChange, request)
        return self.tagged(members.change_role(member, role=Role(wanted["role"]), **self.who()))

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a member, or leave; with the last membership their tokens die at once."""
        member = self.get_object()
        if member.user_id != self.request.actor.id:
            self.allow(members.node(member.project), action="members.write")
        members.remove(member, **self.who())
        return Response(status=204)


class Invitations(ListModelMixin, People):
    """Offers of membership. The link is shown once, works once, and lives a week."""

    serializer_class = InvitationOut
    actions_needed = {
        "list": "invitations.read",
        "retrieve": "invitations.read",
        "create": "members.write",
        "destroy": "members.write",
    }

    def get_queryset(self) -> Any:
        return self.visible(Invitation.objects.select_related("project", "tenant"))

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one invitation."""
        return Response(InvitationOut(self.get_object()).data)

    @extend_schema(request=InvitationWanted, responses={201: InvitationMade})
    @idempotent(hide=("url",))
    def create(self, request: Request) -> Response:
        """Invite somebody; send them the link that is answered."""
        wanted = shape(InvitationWanted, request)
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
        """Take an invitation back."""
        invitation = self.get_object()
        self.allow(members.node(invitation.project))
        invitations.revoke(invitation, actor=self.request.actor, now=self.now)
        return Response(status=204)


class ServiceAccounts(Etagged, ListModelMixin, People):
    """Machines with a role; they sign in with tokens only."""

    serializer_class = ServiceAccountOut
    filters = {"closed": Filter("closed_at__isnull", "flag_not"), "project": Filter("project_id")}
    search_in = ("name",)
    actions_needed = {
        "list": "members.read",
        "retrieve": "members.read",
        "create": "members.write",
        "partial_update": "members.write",
        "destroy": "members.write",
    }

    def get_queryset(self) -> Any:
        return self.visible(ServiceAccount.objects.select_related("project", "tenant"))

    @extend_schema(request=ServiceAccountWanted, responses={201: ServiceAccountOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Make a service account."""
        wanted = shape(ServiceAccountWanted, request)
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
        """Give a service account another role."""
        account = self.get_object()
        self.allow(members.node(account.project))
        wanted = shape(RoleChange, request)
        return self.tagged(service_accounts.change_role(account, role=Role(wanted["role"]), **self.who()))

    def destroy(self, request: Request, pk: str) -> Response:
        """Close a service account and every token of it."""
        account = self.get_object()
        self.allow(members.node(account.project))
        service_accounts.close(account, **self.who())
        return Response(status=204)


class Roles(TenantViewSet):
    """The five roles, in words and as the list of what each may."""

    serializer_class = RoleOut
    pagination_class = None
    filter_backends = []
    actions_needed = {"list": "tenant.read"}

    @extend_schema(responses=RolePage)
    def list(self, request: Request) -> Response:
        """Return every role."""
        rows = [{"role": role, "actions": sorted(ALLOWED[role])} for role in Role]
        items = RoleOut(rows, many=True).data
        return Response({"items": items, "next_cursor": None, "total_estimate": len(items)})
