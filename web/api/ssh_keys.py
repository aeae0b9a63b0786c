"""API of the caller's saved SSH keys: add, list, delete."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.domain.ssh_keys import LONGEST_KEY, key_comment, key_type
from tenants.models import SshKey
from tenants.services import ssh_keys
from tenants.services.errors import NotAllowed
from web.api.base_views import TenantViewSet, needs, validated_body
from web.api.serializer_fields import NameField, StrictSerializer
from web.http.idempotency import idempotent


class SshKeyCreate(StrictSerializer):
    """Request body of an SSH key."""

    name = NameField()
    public_key = serializers.CharField(
        max_length=LONGEST_KEY, help_text="One line, as in `~/.ssh/id_ed25519.pub`. Private keys are refused."
    )


class SshKeyOut(serializers.ModelSerializer[SshKey]):
    type = serializers.SerializerMethodField(help_text="Such as `ssh-ed25519`.")
    comment = serializers.SerializerMethodField()

    class Meta:
        model = SshKey
        fields = ("id", "name", "type", "comment", "fingerprint", "public_key", "created_at", "last_used_at")

    def get_type(self, key: SshKey) -> str:
        return key_type(key.public_key)

    def get_comment(self, key: SshKey) -> str:
        return key_comment(key.public_key)


class SshKeyViewSet(ListModelMixin, TenantViewSet):
    """Your public SSH keys, in all tenants.

    A lease names them in `ssh_key_ids` of its request.
    """

    serializer_class = SshKeyOut
    rows = SshKey.objects.all()
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "fingerprint")
    actions_needed = needs("ssh_keys.read", "list", "retrieve") | needs("ssh_keys.write", "create", "destroy")

    def get_queryset(self) -> Any:
        """Return the caller's keys; none to a token restricted to a project."""
        mine = ssh_keys.keys_of(self.request.actor).order_by()
        return mine.none() if self.request.roles.within else mine

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one key."""
        return Response(SshKeyOut(self.get_object()).data)

    @extend_schema(request=SshKeyCreate, responses={201: SshKeyOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Save a public key of yours; service accounts have none."""
        wanted = validated_body(SshKeyCreate, request)
        if self.request.roles.within:
            raise NotAllowed(
                "A token restricted to a project cannot change your account's SSH keys.",
                fix="Use the account page, or a token for the whole tenant.",
            )
        key = ssh_keys.add_key(**wanted, **self.by)
        return Response(SshKeyOut(key).data, status=201, headers={"Location": f"/api/v1/ssh-keys/{key.pk}"})

    def destroy(self, request: Request, pk: str) -> Response:
        """Delete a key; leases that were launched with it keep it."""
        ssh_keys.delete_key(self.get_object(), **self.by)
        return Response(status=204)
