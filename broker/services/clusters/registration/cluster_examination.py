"""Cluster examination: the checks of the doctor, before and after registration."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.models import Cluster, ClusterExamination, Lease
from broker.provisioners.base import ClusterUnreachable, spec_name
from broker.provisioners.kubernetes.cluster_connection import read_kubeconfig
from broker.provisioners.kubernetes.doctor import examination, snapshot_collection
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.provisioners.kubernetes.doctor.snapshot_collection import RegisteredCluster
from broker.provisioners.kubernetes.drivers.cluster_driver import ClusterDriver
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from broker.provisioners.kubernetes.render.allowed_namespaces import resolve_allowed_namespaces
from broker.provisioners.kubernetes.tolerations import parse_tolerations
from broker.services.inventory.gpu_catalogue import gpu_model_specs
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope


class SimulatedClusterRefused(ProblemError):
    code, status, title = "simulated-cluster", 409, "A simulated cluster cannot be checked"


def known_gpu_models() -> tuple[GpuModelSpec, ...]:
    """Return every known GPU model."""
    return tuple(spec for spec in gpu_model_specs().values() if spec.has_gpu)


def examine_kubeconfig(
    kubeconfig: Mapping[str, Any], *, driver: ClusterDriver, now: datetime, tries: str = ""
) -> list[ClusterFinding]:
    """Examine a cluster before it is registered.

    Pods of the image `tries` test its network.
    """
    return examination.examine_cluster(
        snapshot_collection.collect_snapshot(kubeconfig, driver, known=RegisteredCluster(), now=now, tries=tries)
    )


def examine_cluster(cluster: Cluster, *, now: datetime) -> list[ClusterFinding]:
    """Examine a registered cluster with its credentials and compare it with our rows."""
    driver = create_driver(cluster.driver, cluster.driver_options, known_gpu_models())
    try:
        kubeconfig = read_kubeconfig(cluster.pk)
    except ClusterUnreachable as missing:
        fix = "Renew the cluster's credentials."
        return [
            ClusterFinding(
                examination.REACHABLE_CHECK,
                CheckOutcome.BAD,
                str(missing),
                "Without credentials, no lease can run.",
                fix,
            )
        ]
    open_to = resolve_allowed_namespaces(cluster.ingress, cluster.bastion, cluster.allowed_namespaces)
    known = RegisteredCluster(
        uid=cluster.uid,
        orders=_held_spec_names(),
        ingress=cluster.ingress,
        allowed_namespaces=open_to,
        tolerations=parse_tolerations(cluster.tolerations),
    )
    return examination.examine_cluster(snapshot_collection.collect_snapshot(kubeconfig, driver, known=known, now=now))


@transaction.atomic
def request_examination(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Queue an examination of a cluster; raise SimulatedClusterRefused if it is simulated."""
    if cluster.provisioner != "kubernetes":
        raise SimulatedClusterRefused(
            f"{cluster.name} is simulated, so there is nothing to check.",
            fix="Add a Kubernetes cluster and check that one.",
        )
    requested = {"asked_at": now, "asked_by": actor.label, "done_at": None}
    ClusterExamination.objects.update_or_create(cluster=cluster, defaults=requested)
    audit.record("cluster.examine", cluster, actor=actor, now=now)
    outbox.enqueue("broker.examine_cluster", cluster.pk, now=now)


def run_examination(cluster_id: str, *, now: datetime) -> list[ClusterFinding]:
    """Examine a cluster, store the findings for its page, and return them.

    No transaction is open while the cluster is asked.
    """
    cluster = Cluster.objects.get(pk=cluster_id)
    found = examine_cluster(cluster, now=now)
    done = {"done_at": now, "findings": [asdict(each) for each in found]}
    ClusterExamination.objects.update_or_create(
        cluster=cluster, defaults=done, create_defaults={**done, "asked_at": now}
    )
    return found


def _held_spec_names() -> frozenset[str]:
    """Return the names of all provision specs that may have objects in a cluster."""
    with system_scope():
        held = Lease.objects.holding().values_list("id", "generation")
        return frozenset(spec_name(lease_id, generation) for lease_id, generation in held)
