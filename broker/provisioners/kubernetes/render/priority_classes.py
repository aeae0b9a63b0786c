"""Priority classes of pods in a cluster.

Between leases of one priority the broker decides, never the scheduler.
"""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render.spec import Manifest

PRIORITY_CLASSES = {
    "gpub-ondemand": (1000, "On-demand and reserved leases"),
    "gpub-spot": (0, "Spot leases; on-demand leases preempt them"),
    "gpub-warm": (-10, "Placeholders that keep images and slices warm; every lease preempts them"),
}


def priority_classes() -> list[Manifest]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "description": why,
            "globalDefault": False,
            "kind": "PriorityClass",
            "metadata": {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": name},
            "preemptionPolicy": "PreemptLowerPriority" if value > 0 else "Never",
            "value": value,
        }
        for name, (value, why) in sorted(PRIORITY_CLASSES.items())
    ]
