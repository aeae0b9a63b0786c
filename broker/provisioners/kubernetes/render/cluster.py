"""What an administrator installs once in a cluster, before the broker may use it."""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.render.admission import policies
from broker.provisioners.kubernetes.render.priorities import priorities
from broker.provisioners.kubernetes.render.reaper import reaper
from broker.provisioners.kubernetes.spec import Manifest

NAME, NAMESPACE = "gpubroker", "gpubroker-system"


def cluster_objects(driver: SliceDriver, *, image: str, namespace: str = NAMESPACE) -> list[Manifest]:
    """Return the objects in the order they are applied; `image` is the broker's own, for the dead man's switch."""
    # Not marked as ours: the walls around tenants are not meant for the broker's own pods.
    home = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"labels": {"app.kubernetes.io/name": labels.US}, "name": namespace},
    }
    return [
        home,
        access.account(NAME, namespace=namespace),
        access.role(NAME, (*access.BROKER, *access.DOCTOR)),
        access.binding(NAME, account=NAME, namespace=namespace),
        *priorities(),
        *policies(driver.schedulers),
        *driver.cluster_objects(),
        *reaper(image=image, namespace=namespace),
    ]
