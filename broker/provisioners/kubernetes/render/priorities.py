"""Who yields to whom inside a cluster; between leases of one rank the broker decides, never the scheduler."""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.spec import Manifest

PRIORITIES = {
    "gpub-ondemand": (1000, "Leases on demand and reserved"),
    "gpub-spot": (0, "Spot leases: they yield to leases on demand"),
    "gpub-warm": (-10, "Placeholders that keep images and slices warm: they yield to every lease"),
}


def priorities() -> list[Manifest]:
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "description": why,
            "globalDefault": False,
            "kind": "PriorityClass",
            "metadata": {"labels": {labels.MANAGED_BY: labels.US}, "name": name},
            "preemptionPolicy": "PreemptLowerPriority" if value > 0 else "Never",
            "value": value,
        }
        for name, (value, why) in sorted(PRIORITIES.items())
    ]
