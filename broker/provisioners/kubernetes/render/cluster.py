"""Objects an administrator installs once in a cluster before the broker uses it."""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.admission import admission_policies
from broker.provisioners.kubernetes.render.image_prepulls import prepull_setup_objects
from broker.provisioners.kubernetes.render.priority_classes import priority_classes
from broker.provisioners.kubernetes.render.reaper import reaper_objects
from broker.provisioners.kubernetes.render.spec import Manifest

NAME, NAMESPACE = "gpubroker", "gpubroker-system"


def cluster_objects(driver: SliceDriver, *, image: str, namespace: str = NAMESPACE) -> list[Manifest]:
    """Return the objects in the order of application.

    `image` is the broker's own image, for the dead man's switch.
    """
    # Without our labels: policies for tenants must not apply to the broker's own pods.
    home = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"labels": {"app.kubernetes.io/name": labels.MANAGER_NAME}, "name": namespace},
    }
    return [
        home,
        rbac.service_account(NAME, namespace=namespace),
        rbac.cluster_role(NAME, (*rbac.BROKER_RULES, *rbac.DOCTOR_RULES)),
        rbac.cluster_role(rbac.POD_ACCESS, rbac.POD_ACCESS_RULES),
        rbac.cluster_role_binding(NAME, account=NAME, namespace=namespace),
        *priority_classes(),
        *admission_policies(driver.schedulers),
        *driver.cluster_objects(),
        *reaper_objects(image=image, namespace=namespace),
        *prepull_setup_objects(account=NAME, namespace=namespace),
    ]
