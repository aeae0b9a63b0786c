"""GPU topology on the launch page."""

import pytest

from broker.models import Gpu, Lease
from tenants.services.rls import tenant_scope
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db


def path(**more: str) -> str:
    return "/launch/?" + "&".join(
        f"{name}={value}" for name, value in {"offering": offering("whole-gpu").pk, "count": "2", **more}.items()
    )


def test_the_interconnect_is_offered_for_whole_gpus_only(portal: PortalSession) -> None:
    assert "GPU interconnect" in portal.read(path())
    assert "GPU interconnect" not in portal.read(path(offering=offering("1g.10gb").pk))


def test_a_gang_with_links_is_quoted_launched_shown_and_proposed_again(portal: PortalSession) -> None:
    for gpu in Gpu.objects.all():
        Gpu.objects.filter(pk=gpu.pk).update(fabric=str(gpu.index // 2))
    page = portal.read(path(topology="nvlink"))
    assert "No cluster can ever" not in page
    assert "GPU 0" in page
    sent = {"offering": offering("whole-gpu").pk, "class": "on_demand", "name": "new", "count": "2", "lasts": "8 h",
            "runs": "own", "image": "python:3", "key": "k1", "topology": "nvlink"}  # fmt: skip
    assert portal.post("/launch/", **sent).status_code == 302
    with tenant_scope(portal.owner.tenant.pk):
        lease = Lease.objects.get()
    assert (lease.topology, lease.same_node) == ("nvlink", True)
    assert "on one node, NVLink" in portal.read(f"/leases/{lease.pk}/")
    again = portal.get(f"/launch/?again={lease.pk}").content.decode()
    assert '<option value="nvlink" selected>' in again
    assert '"topology": "nvlink"' in again or "topology&quot;: &quot;nvlink" in again


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"topology": "nvlink"}, "with NVLink between the GPUs holds at most 0"),
        ({"topology": "bus"}, "is not a valid GPU interconnect"),
    ],
)
def test_unavailable_gpu_links_are_refused_with_a_reason(
    portal: PortalSession, wanted: dict[str, str], why: str
) -> None:
    assert why in visible_text(portal.get(path(**wanted)))


def test_the_interconnect_is_ignored_for_a_single_gpu(portal: PortalSession) -> None:
    assert "has no interconnect" not in portal.read(path(count="1", topology="nvlink"))
