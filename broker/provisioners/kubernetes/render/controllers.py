"""What keeps the pods of a lease: a StatefulSet, a Job or a Deployment, one for each of its nodes."""

from broker.domain.workloads import Program, Shape
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.pod import pod_template
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest

KEPT_AFTER_S = 86_400  # a finished Job, should nobody look


def controllers(lease: LeaseSpec, program: Program, driver: SliceDriver) -> list[Manifest]:
    """Return one controller per node; none of them ever rolls a pod: what would change one is a new generation."""
    make = {Shape.SESSION: _stateful_set, Shape.BATCH: _job, Shape.SERVICE: _deployment}
    found = []
    for rank, node in enumerate(lease.nodes):
        pod = pod_template(lease, program, driver.wants(lease, node), rank=rank)
        found.append(make[program.template.shape](lease, pod, rank))
    return found


def _named(lease: LeaseSpec, rank: int, *, kind: str, version: str, spec: Manifest) -> Manifest:
    name = names.on_node(lease.lease_id, lease.generation, rank, len(lease.nodes))
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _selector(lease: LeaseSpec, rank: int) -> Manifest:
    mine = {
        labels.LEASE: lease.lease_id,
        labels.GENERATION: str(lease.generation),
        labels.RANK: str(rank),
    }
    return {"matchLabels": mine}


def _stateful_set(lease: LeaseSpec, pod: Manifest, rank: int) -> Manifest:
    pod["spec"].pop("hostname", None)  # the controller gives its own
    spec = {
        "podManagementPolicy": "Parallel",
        "replicas": 1,
        "selector": _selector(lease, rank),
        "serviceName": names.peers(lease.lease_id, lease.generation),
        "template": pod,
        "updateStrategy": {"type": "OnDelete"},
    }
    return _named(lease, rank, kind="StatefulSet", version="apps/v1", spec=spec)


def _job(lease: LeaseSpec, pod: Manifest, rank: int) -> Manifest:
    paid_s = int((lease.paid_until - lease.placed_at).total_seconds())
    spec = {
        "activeDeadlineSeconds": max(paid_s, 1),  # nobody computes unpaid, even with the broker dead
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"status": "True", "type": "DisruptionTarget"}]}
            ]
        },
        "podReplacementPolicy": "Failed",  # never two at once
        "template": pod,
        "ttlSecondsAfterFinished": KEPT_AFTER_S,
    }
    return _named(lease, rank, kind="Job", version="batch/v1", spec=spec)


def _deployment(lease: LeaseSpec, pod: Manifest, rank: int) -> Manifest:
    patience_s = 2 * max(pod["spec"]["containers"][0].get("startupProbe", {}).get("failureThreshold", 0), 300)
    spec = {
        "progressDeadlineSeconds": patience_s,
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "selector": _selector(lease, rank),
        "strategy": {"type": "Recreate"},
        "template": pod,
    }
    return _named(lease, rank, kind="Deployment", version="apps/v1", spec=spec)
