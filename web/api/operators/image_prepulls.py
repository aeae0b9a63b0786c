"""Operators' API of the images that clusters keep on their GPU nodes."""

from typing import Any

from rest_framework import serializers

from broker.models import Cluster, ImagePrepull
from broker.services.clusters import image_prepulls
from tenants.services.errors import ObjectNotFound
from web.api.base_views import OLDEST_FIRST
from web.api.lease_serializers import PlainTextField
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class ImagePrepullOut(serializers.ModelSerializer[ImagePrepull]):
    """An image of a cluster, and how many of its GPU nodes have it."""

    cluster = serializers.CharField(source="cluster_id")

    class Meta:
        model = ImagePrepull
        fields = ("id", "cluster", "image", "created_at", "nodes_total", "nodes_ready", "ready_since", "problem",
                  "checked_at", "removed_at")  # fmt: skip


class ImagePrepullIn(StrictSerializer):
    cluster = serializers.CharField(max_length=40)
    image = PlainTextField(max_length=300)


class ImagePrepullViewSet(CrossTenantViewSet):
    """Images kept on GPU nodes, so that leases start without pulling them."""

    area = "fleet"
    serializer_class, rows, audit_action = ImagePrepullOut, ImagePrepull.objects.all(), "image-prepulls"
    sorts, search_in = OLDEST_FIRST, ("image",)
    filters = {"cluster": QueryFilter("cluster_id")}

    @OperatorAct(ImagePrepullIn)
    def create(self, wanted: dict[str, Any]) -> ImagePrepull:
        """Have a cluster keep an image; repeating it changes nothing."""
        cluster = Cluster.objects.filter(pk=wanted["cluster"]).first()
        if cluster is None:
            raise ObjectNotFound("The cluster does not exist.", fix="Choose one from the list of clusters.")
        return image_prepulls.add_image(cluster, wanted["image"], **self.by)

    @OperatorAct()
    def destroy(self, kept: ImagePrepull) -> None:
        """Give up an image; its row goes once the cluster confirms it."""
        image_prepulls.remove_image(kept, **self.by)
