"""Controllers of a lease's pods: a StatefulSet, Job or Deployment per node."""

from broker.domain.workloads.templates import ContainerProgram, WorkloadShape
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.pod import pod_template
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest

JOB_TTL_S = 86_400  # a finished Job, if nobody removes it


def lease_controllers(lease: LeaseSpec, program: ContainerProgram, driver: SliceDriver) -> list[Manifest]:
    """Return one controller per node.

    None of them ever rolls a pod: what would change one is a new generation.
    """
    make = {WorkloadShape.SESSION: _stateful_set, WorkloadShape.BATCH: _job, WorkloadShape.SERVICE: _deployment}
    found = []
    for rank, node in enumerate(lease.nodes):
        pod = pod_template(lease, program, driver.slice_request(lease, node), rank=rank)
        found.append(make[program.template.shape](lease, pod, rank))
    return found


def _controller(lease: LeaseSpec, rank: int, *, kind: str, version: str, spec: Manifest) -> Manifest:
    name = names.controller_name(lease.lease_id, lease.generation, rank, len(lease.nodes))
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _selector(lease: LeaseSpec, rank: int) -> Manifest:
    mine = {labels.LEASE: lease.lease_id, labels.GENERATION: str(lease.generation), labels.RANK: str(rank)}
    return {"matchLabels": mine}


def _stateful_set(lease: LeaseSpec, pod: Manifest, rank: int) -> Manifest:
    pod["spec"].pop("hostname", None)  # the controller sets its own
    spec = {
        "podManagementPolicy": "Parallel",
        "replicas": 1,
        "selector": _selector(lease, rank),
        "serviceName": names.peers_name(lease.lease_id, lease.generation),
        "template": pod,
        "updateStrategy": {"type": "OnDelete"},
    }
    return _controller(lease, rank, kind="StatefulSet", version="apps/v1", spec=spec)


def _job(lease: LeaseSpec, pod: Manifest, rank: int) -> Manifest:
    paid_s = int((lease.paid_until - lease.placed_at).total_seconds())
    spec = {
        "activeDeadlineSeconds": max(paid_s, 1),  # nothing runs unpaid, even if the broker is dead
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"status": "True", "type": "DisruptionTarget"}]}]
        },
        "podReplacementPolicy": "Failed",  # never two pods at once
        "template": pod,
        "ttlSecondsAfterFinished": JOB_TTL_S,
    }
    return _controller(lease, rank, kind="Job", version="batch/v1", spec=spec)


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
    return _controller(lease, rank, kind="Deployment", version="apps/v1", spec=spec)
