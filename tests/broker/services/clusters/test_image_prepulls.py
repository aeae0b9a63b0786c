"""Images that a cluster keeps on its GPU nodes."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, ImagePrepull, Node, NodeState
from broker.services.clusters import image_prepulls
from broker.services.clusters.image_prepulls import MAX_IMAGES, TooManyImages, add_image, remove_image
from tenants.models import AuditEvent
from tenants.services.actors import SYSTEM
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

IMAGE = "ghcr.io/acme/comfy:1"


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def keep(sim: Simulation, image: str = IMAGE) -> ImagePrepull:
    """Request an image for the only cluster."""
    return add_image(Cluster.objects.get(), image, actor=SYSTEM, now=sim.now)


def pull(sim: Simulation, image: str = IMAGE) -> ImagePrepull:
    """Request an image and wait until every node has it."""
    kept = keep(sim, image)
    sim.run(30)
    image_prepulls.check_image_prepull(kept.pk, now=sim.now)
    kept.refresh_from_db()
    return kept


def progress_texts(sim: Simulation, owner: TenantContext, image: str) -> set[str]:
    """Launch a lease and return what it showed until it was active."""
    lease, seen = sim.request_lease(owner, offering(), image=image), set[str]()
    for _ in range(100):
        sim.run(0.2)
        lease = reload_lease(lease)
        if lease.state == LeaseState.ACTIVE:
            return seen
        seen.add(str(lease.progress.get("text", "")))
    raise AssertionError(f"{lease.state}: {seen}")


def test_an_image_is_counted_on_every_node(sim: Simulation, kestrel: TenantContext) -> None:
    kept = keep(sim)
    image_prepulls.check_image_prepull(kept.pk, now=sim.now)
    kept.refresh_from_db()
    assert (kept.nodes_ready, kept.ready_since) == (0, None)
    kept = pull(sim)
    nodes = Node.objects.count()
    assert (kept.nodes_total, kept.nodes_ready) == (nodes, nodes)
    assert kept.ready_since is not None


def test_a_lease_with_a_kept_image_starts_without_pulling_it(sim: Simulation, kestrel: TenantContext) -> None:
    assert "pulling image" in progress_texts(sim, kestrel, IMAGE)
    pull(sim)
    assert "pulling image" not in progress_texts(sim, kestrel, IMAGE)
    assert "pulling image" in progress_texts(sim, kestrel, "ghcr.io/acme/other:1")


def test_an_image_is_requested_once_and_audited(sim: Simulation, kestrel: TenantContext) -> None:
    first = keep(sim)
    assert keep(sim) == first
    with staff_scope():
        (event,) = AuditEvent.objects.filter(action="cluster.keep_image")
    assert event.detail["image"] == IMAGE


def test_a_removed_image_is_given_up_and_can_be_requested_again(sim: Simulation, kestrel: TenantContext) -> None:
    kept = pull(sim)
    removed = remove_image(kept, actor=SYSTEM, now=sim.now)
    assert removed.removed_at == sim.now
    assert keep(sim).removed_at is None
    remove_image(kept, actor=SYSTEM, now=sim.now)
    sim.run(1)
    assert not ImagePrepull.objects.exists()
    image_prepulls.check_image_prepull(kept.pk, now=sim.now)  # a message that comes late


def test_a_problem_is_shown_with_its_reason(sim: Simulation, kestrel: TenantContext) -> None:
    kept = pull(sim, "refuse/nothing:1")
    assert (kept.nodes_ready, kept.problem) == (0, "the registry says that the image does not exist")
    Cluster.objects.update(frozen="it is another cluster")
    assert "frozen until an operator decides" in pull(sim).problem


def test_images_are_checked_soon_until_every_node_has_them(sim: Simulation, kestrel: TenantContext) -> None:
    kept = keep(sim)
    message = ("broker.check_image_prepull", kept.pk, "")
    assert image_prepulls.due_prepulls(now=sim.now) == [message]
    image_prepulls.check_image_prepull(kept.pk, now=sim.now)
    assert image_prepulls.due_prepulls(now=sim.now + timedelta(seconds=9)) == []
    assert image_prepulls.due_prepulls(now=sim.now + timedelta(seconds=10)) == [message]
    pulled_at = sim.now + timedelta(seconds=30)
    image_prepulls.check_image_prepull(kept.pk, now=pulled_at)
    assert image_prepulls.due_prepulls(now=pulled_at + timedelta(seconds=299)) == []
    assert image_prepulls.due_prepulls(now=pulled_at + timedelta(minutes=5)) == [message]


def test_a_lost_node_is_not_counted(sim: Simulation, kestrel: TenantContext) -> None:
    Node.objects.update(state=NodeState.LOST)
    kept = pull(sim)
    assert (kept.nodes_total, kept.ready_since) == (0, None)


@pytest.mark.parametrize("image", ["", "no image", "localhost/x"])
def test_an_invalid_image_is_refused(image: str, sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue):
        keep(sim, image)


def test_a_cluster_keeps_at_most_20_images(sim: Simulation, kestrel: TenantContext) -> None:
    for number in range(MAX_IMAGES):
        keep(sim, f"acme/image-{number}")
    with pytest.raises(TooManyImages):
        keep(sim)
