"""Images that a cluster keeps on its GPU nodes, for operators."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from broker.models import Cluster, ImagePrepull
from broker.services.clusters import image_prepulls
from tenants.services.errors import ProblemError
from web.portal.actions import operator_api_call
from web.portal.operators.layouts.layout_pages import find_cluster
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    form_page,
    operator_page,
)


def _image_cells(each: ImagePrepull) -> tuple[object, ...]:
    return (
        *(each.pk, each.cluster_id, each.image, each.nodes_ready, each.nodes_total, each.problem),
        *(csv_time(each.created_at), each.created_by_label, csv_time(each.checked_at), csv_time(each.ready_since)),
    )


IMAGE_LIST = OperatorList(
    name="images",
    heads=("image_prepull cluster image nodes_ready nodes_total problem created_at created_by checked_at ready_since"),
    cells=_image_cells,
    at="created_at",
    search=("image", "created_by_label", "pk"),
)


@dataclass(frozen=True, slots=True)
class ClusterImagePage:
    """The images of a cluster, with the form that adds one."""

    cluster: Cluster
    listing: FilteredList
    entered: str
    error: str
    calls: list[dict[str, str]]


@operator_page("cluster.images", methods=SAFE_OR_POST)
def list_images(request: OperatorRequest, pk: str) -> Any:
    """List the images a cluster keeps; a POST adds one."""
    cluster = find_cluster(pk)
    rows = ImagePrepull.objects.filter(cluster=cluster).order_by("image")
    if wants_csv(request):
        return read_lists(request, IMAGE_LIST).csv((IMAGE_LIST, lambda: rows))

    def build(refusal: ProblemError | None) -> ClusterImagePage:
        return ClusterImagePage(
            cluster=cluster,
            listing=read_lists(request, IMAGE_LIST).read(IMAGE_LIST, rows),
            entered=request.POST.get("image", "")[:300],
            error=f"{refusal.detail} {refusal.fix.text}" if refusal else "",
            calls=[operator_api_call(_("Images"), "ops/image-prepulls", cluster=cluster.pk)],
        )

    def add() -> str:
        entered = request.POST.get("image", "")[:400]
        kept = image_prepulls.add_image(cluster, entered, actor=request.actor, now=request.now)
        return _("{image} is being pulled on every GPU node.").format(image=kept.image)

    return form_page(
        request, "operators/fleet/cluster_images.html", build, add, back=reverse("ops-cluster-images", args=[pk])
    )


@operator_page("cluster.remove_image", methods=SAFE_OR_POST)
def remove_image(request: OperatorRequest, pk: str) -> HttpResponse:
    """Give up an image, after a confirmation page."""
    rows = ImagePrepull.objects.select_related("cluster")
    kept = find_row(rows, pk, _("This image"), fix=_("Choose one from the cluster's images."))

    def act(_why: str) -> str:
        image_prepulls.remove_image(kept, actor=request.actor, now=request.now)
        return _("{image} is no longer kept.").format(image=kept.image)

    step = Confirmation(
        title=_("Stop keeping {image}?").format(image=kept.image),
        verb=_("Stop keeping it"),
        back=reverse("ops-cluster-images", args=[kept.cluster_id]),
        lines=(_("Nodes may delete it when they need space. Running leases are not affected."),),
        needs_reason=False,
    )
    return confirm_action(request, step, act)
