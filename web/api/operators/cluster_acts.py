"""Operators' acts on clusters: register, change, and accept what differs from our records."""

from typing import Any

from django.db import IntegrityError, transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from broker.models import Cluster, Orphan
from broker.provisioners.kubernetes.client.kubeconfig import UnusableKubeconfig, parse_pasted_kubeconfig
from broker.provisioners.kubernetes.drivers.driver_registry import CLUSTER_DRIVERS, UnknownOption, parse_driver_options
from broker.services.clusters import orphan_removal
from broker.services.clusters.health import cluster_freeze
from broker.services.clusters.registration import cluster_examination, cluster_registration
from broker.services.inventory import cluster_options
from broker.services.leases.lifecycle import eviction
from ports import crypto
from tenants.services.errors import InvalidValue
from web.api.base_views import ETagViewSet, complete_page, validated_body
from web.api.lease_serializers import page_of
from web.api.operators.base_views import OperatorAct, OperatorViewSet, ReasonIn
from web.api.serializer_fields import StrictSerializer
from web.http.idempotency import idempotent

MAX_NAME_LENGTH, MAX_KUBECONFIG_LENGTH = 60, 500_000
INGRESS_FIELDS = ("domain", "ingress", "bastion", "allowed_namespaces", "tolerations")
SWITCHES = {
    "allow_shared_gpus": cluster_options.SHARED_GPUS,
    "auto_repartition": cluster_options.AUTO_REPARTITION,
}


class ClusterOut(serializers.ModelSerializer[Cluster]):
    """A cluster; its credentials are never shown."""

    class Meta:
        model = Cluster
        fields = ("id", "name", "region", "provisioner", "allow_shared_gpus", "auto_repartition", "frozen",
                  *INGRESS_FIELDS, "created_at")  # fmt: skip


class KubeconfigIn(StrictSerializer):
    kubeconfig = serializers.CharField(
        max_length=MAX_KUBECONFIG_LENGTH, trim_whitespace=False, help_text="YAML or JSON; it may run no programs."
    )


class ClusterCreate(KubeconfigIn):
    name = serializers.CharField(max_length=MAX_NAME_LENGTH)
    region = serializers.CharField(max_length=MAX_NAME_LENGTH)
    driver = serializers.ChoiceField(choices=sorted(CLUSTER_DRIVERS), default="device_plugin")
    driver_options = serializers.ListField(
        child=serializers.CharField(max_length=100), default=list, help_text="Such as `consumable_capacity=yes`."
    )


class ClusterChange(StrictSerializer):
    """What to change of a cluster; a switch needs a reason, for the audit log."""

    allow_shared_gpus = serializers.BooleanField(help_text="Whether tenants may share GPUs of isolation soft or none.")
    auto_repartition = serializers.BooleanField(help_text="Whether planned layout changes begin without approval.")
    reason = serializers.CharField(max_length=eviction.MAX_REASON_LENGTH)
    domain = serializers.CharField(max_length=253, allow_blank=True)
    ingress = serializers.CharField(max_length=253, allow_blank=True)
    bastion = serializers.CharField(max_length=253, allow_blank=True)
    allowed_namespaces = serializers.CharField(max_length=500, allow_blank=True)
    tolerations = serializers.CharField(max_length=500, allow_blank=True)


class OrphanOut(serializers.ModelSerializer[Orphan]):
    """An object of ours in a cluster that belongs to no lease."""

    id = serializers.CharField(source="pk")

    class Meta:
        model = Orphan
        fields = ("id", "name", "found_at", "deletion_approved_at", "deletion_requested_at")


class OrphanDeletion(ReasonIn):
    names = serializers.ListField(child=serializers.CharField(max_length=253), min_length=1, max_length=1000)


class OrphanDeletionOut(serializers.Serializer[Any]):
    approved_count = serializers.IntegerField(help_text="How many of them were waiting; they go within minutes.")


class ClusterActs(ETagViewSet, OperatorViewSet):
    """Acts on clusters; each is audited."""

    changing = ("partial_update",)

    def find_row(self) -> Cluster:
        """Return the cluster, locked for a change."""
        found: Cluster = super().find_row()
        return found

    @extend_schema(request=ClusterCreate, responses={201: ClusterOut})
    @idempotent(secret=("kubeconfig",))
    def create(self, request: Request) -> Response:
        """Register a cluster by its kubeconfig, and examine it."""
        body = validated_body(ClusterCreate, request)
        with transaction.atomic():
            cluster = _register_cluster(body, self.by)
            cluster_examination.request_examination(cluster, **self.by)
        return self.tagged(cluster, status=201, Location=f"/api/v1/clusters/{cluster.pk}")

    @extend_schema(request=ClusterChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change switches and access settings; omitted fields stay."""
        cluster = self.get_object()
        body = validated_body(ClusterChange, request, partial=True)
        for name in SWITCHES.keys() & body.keys():
            why = eviction.clean_reason(body.get("reason", ""))
            cluster_options.set_cluster_option(SWITCHES[name], cluster, body[name], why=why, **self.by)
        if body.keys() & set(INGRESS_FIELDS):
            cluster.refresh_from_db()
            wanted = {name: body.get(name, getattr(cluster, name)).strip() for name in INGRESS_FIELDS}
            settings = cluster_registration.IngressSettings(**wanted)
            cluster_registration.set_ingress(cluster, settings, version=cluster.version, **self.by)
        cluster.refresh_from_db()
        return self.tagged(cluster)

    @OperatorAct(KubeconfigIn)
    def credentials(self, cluster: Cluster, body: dict[str, Any]) -> Cluster:
        """Replace the stored credentials, and examine the cluster."""
        kubeconfig = _parse_kubeconfig(body)
        try:
            cluster_registration.renew_credentials(cluster, kubeconfig, **self.by)
        except crypto.CredentialKeyError as error:
            raise InvalidValue("kubeconfig", str(error), fix="Then send it again.") from None
        cluster_examination.request_examination(cluster, **self.by)
        return cluster

    @OperatorAct(ReasonIn)
    def accept_inventory(self, cluster: Cluster, body: dict[str, Any]) -> Cluster:
        """Accept the next inventory although GPUs are missing from it."""
        why = eviction.clean_reason(body["reason"])
        cluster_registration.accept_missing_inventory(cluster, why=why, **self.by)
        return cluster

    @OperatorAct(ReasonIn)
    def unfreeze(self, cluster: Cluster, body: dict[str, Any]) -> Cluster:
        """Unfreeze a cluster and accept its present state."""
        cluster_freeze.unfreeze_cluster(cluster, why=eviction.clean_reason(body["reason"]), **self.by)
        return cluster

    @extend_schema(responses=page_of(OrphanOut, "OrphanPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def orphans(self, request: Request, pk: str) -> Response:
        """Return the objects without a lease that wait for a decision."""
        waiting = Orphan.objects.filter(cluster=_owner_of_orphans(self.find_row()), deletion_approved_at=None)
        return complete_page(OrphanOut(waiting.order_by("pk"), many=True).data)

    @extend_schema(request=OrphanDeletion, responses=OrphanDeletionOut, filters=False)
    @orphans.mapping.post
    @idempotent()
    def delete_orphans(self, request: Request, pk: str) -> Response:
        """Approve the deletion of exactly these objects."""
        cluster = self.find_row()
        body = validated_body(OrphanDeletion, request)
        why = eviction.clean_reason(body["reason"])
        count = orphan_removal.approve_removal(_owner_of_orphans(cluster), body["names"], why=why, **self.by)
        return Response({"approved_count": count})


def _owner_of_orphans(cluster: Cluster) -> str | None:
    """Return whose orphans a cluster shows; those of simulated clusters have none."""
    return None if cluster.provisioner == "simulated" else cluster.pk


def _register_cluster(body: dict[str, Any], by: dict[str, Any]) -> Cluster:
    try:
        options = parse_driver_options(body["driver"], body["driver_options"])
    except UnknownOption as error:
        raise InvalidValue("driver_options", f"{error}.", fix="Leave it out, or choose another driver.") from None
    kubeconfig = _parse_kubeconfig(body)
    try:
        with transaction.atomic():
            return cluster_registration.register_cluster(
                name=" ".join(body["name"].split()),
                region=" ".join(body["region"].split()),
                kubeconfig=kubeconfig,
                driver=body["driver"],
                driver_options=options,
                **by,
            )
    except IntegrityError:
        raise InvalidValue("name", f"A cluster named {body['name']} exists.", fix="Choose another name.") from None
    except crypto.CredentialKeyError as error:
        raise InvalidValue("kubeconfig", str(error), fix="Then send it again.") from None


def _parse_kubeconfig(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return parse_pasted_kubeconfig(body["kubeconfig"])
    except UnusableKubeconfig as error:
        raise InvalidValue("kubeconfig", str(error), fix="Correct the kubeconfig and send it again.") from None
