"""Images kept on the nodes of a real control plane."""

from datetime import timedelta

from broker.models import Cluster, ImagePrepull
from broker.provisioners.kubernetes.render.image_prepulls import NAMESPACE
from broker.services.clusters import image_prepulls
from tenants.services.actors import SYSTEM
from tests.cluster.installation import Installation

DAEMON_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
IMAGE = "registry.example/comfy:1"


def test_an_image_is_kept_by_a_daemon_set_and_given_up_with_it(installed: Installation) -> None:
    now = installed.sim.now
    kept = image_prepulls.add_image(Cluster.objects.get(), IMAGE, actor=SYSTEM, now=now)
    image_prepulls.check_image_prepull(kept.pk, now=now)
    (found,) = installed.plane.api.get(DAEMON_SETS)["items"]
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    kept.refresh_from_db()
    assert (kept.problem, kept.checked_at) == ("", now)
    image_prepulls.remove_image(kept, actor=SYSTEM, now=now)
    for seconds in range(30):
        image_prepulls.check_image_prepull(kept.pk, now=now + timedelta(seconds=seconds))
        if not ImagePrepull.objects.exists():
            break
    assert installed.plane.api.get(DAEMON_SETS)["items"] == []
    assert not ImagePrepull.objects.exists()
