"""Images that a cluster keeps on its GPU nodes: requested by operators, checked periodically."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from broker.domain.workloads.image_references import image_reference_fault
from broker.models import Cluster, ImagePrepull
from broker.provisioners.base import ClusterUnreachable, ImagePresence, KeptImage
from broker.services.inventory.cluster_provisioners import provisioner_of_cluster
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError

MAX_IMAGES = 20  # per cluster: each is a pod on every GPU node, and takes space there
SOON, LATER = timedelta(seconds=10), timedelta(minutes=5)  # between checks, until every node has it and after


class TooManyImages(ProblemError):
    code, status, title = "too-many-images", 409, "The cluster keeps too many images"


@transaction.atomic
def add_image(cluster: Cluster, image: str, *, actor: Actor, now: datetime) -> ImagePrepull:
    """Have a cluster keep an image on its GPU nodes; may be repeated."""
    image = image.strip()
    if not image or (fault := image_reference_fault(image)):
        raise InvalidValue("image", fault if image else "The image is empty.", fix="Enter it as for docker pull.")
    cluster = Cluster.objects.select_for_update(of=("self",), no_key=True).get(pk=cluster.pk)
    rows = ImagePrepull.objects.filter(cluster=cluster)
    there = rows.filter(image=image).first()
    if there is not None and there.removed_at is None:
        return there
    if rows.filter(removed_at=None).count() >= MAX_IMAGES:
        raise TooManyImages(f"A cluster keeps at most {MAX_IMAGES} images.", fix="Remove another image first.")
    began = {"created_at": now, "created_by": actor.id, "created_by_label": actor.label}
    fresh = {"checked_at": None, "removed_at": None, "ready_since": None, "nodes_ready": 0, "problem": ""}
    kept, _ = ImagePrepull.objects.update_or_create(cluster=cluster, image=image, defaults={**began, **fresh})
    audit.record("cluster.keep_image", cluster, actor=actor, now=now, image=image)
    outbox.enqueue("broker.check_image_prepull", kept.pk, now=now)
    return kept


@transaction.atomic
def remove_image(kept: ImagePrepull, *, actor: Actor, now: datetime) -> ImagePrepull:
    """Give up an image of a cluster; its row goes once the cluster confirms it."""
    if ImagePrepull.objects.filter(pk=kept.pk, removed_at=None).update(removed_at=now):
        audit.record("cluster.drop_image", kept.cluster, actor=actor, now=now, image=kept.image)
        outbox.enqueue("broker.check_image_prepull", kept.pk, now=now)
    kept.refresh_from_db()
    return kept


def check_image_prepull(prepull_id: str, *, now: datetime) -> None:
    """Request an image of a cluster or give it up; store its progress.

    No transaction is open while the cluster is asked. Idempotent.
    """
    kept = ImagePrepull.objects.select_related("cluster").filter(pk=prepull_id).first()
    if kept is None:
        return
    provisioner = provisioner_of_cluster(kept.cluster)
    wanted = KeptImage(kept.cluster_id, kept.image, kept.created_at, kept.cluster.tolerations)
    row = ImagePrepull.objects.filter(pk=kept.pk, removed_at=kept.removed_at)  # unless it was changed meanwhile
    try:
        if kept.removed_at is not None:
            gone = provisioner.drop_image(wanted, now=now)
            row.delete() if gone else row.update(checked_at=now, problem="")
        else:
            _store_presence(kept, provisioner.keep_image(wanted, now=now), now=now)
    except ClusterUnreachable as error:
        row.update(checked_at=now, problem=str(error)[:300])


def due_prepulls(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return a message for every image that must be checked."""
    waits = Q(ready_since=None) | Q(removed_at__isnull=False)
    due = Q(checked_at=None) | (waits & Q(checked_at__lte=now - SOON)) | Q(checked_at__lte=now - LATER)
    rows = ImagePrepull.objects.filter(due).order_by(F("checked_at").asc(nulls_first=True), "pk")
    return [("broker.check_image_prepull", pk, "") for pk in rows.values_list("pk", flat=True)[:MAX_IMAGES]]


def _store_presence(kept: ImagePrepull, found: ImagePresence, *, now: datetime) -> None:
    complete = 0 < found.nodes_total <= found.nodes_ready
    ImagePrepull.objects.filter(pk=kept.pk, removed_at=None).update(
        nodes_total=found.nodes_total,
        nodes_ready=found.nodes_ready,
        problem=found.problem[:300],
        checked_at=now,
        ready_since=(kept.ready_since or now) if complete else None,
    )
