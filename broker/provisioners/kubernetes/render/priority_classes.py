"""Priority classes of pods in a cluster.

None of them preempts: pods of others in a shared cluster keep running, and between leases the broker decides.
"""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render.spec import Manifest

PRIORITY_CLASSES = {
    "gpub-ondemand": (1000, "On-demand and reserved leases"),
    "gpub-spot": (0, "Spot leases; the broker ends them for on-demand leases"),
    "gpub-warm": (-10, "Placeholders that keep images and slices warm; the broker removes them for leases"),
}


def priority_classes() -> list[Manifest]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "description": why,
            "globalDefault": False,
            "kind": "PriorityClass",
            "metadata": {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": name},
            "preemptionPolicy": "Never",
            "value": value,
        }
        for name, (value, why) in sorted(PRIORITY_CLASSES.items())
    ]
