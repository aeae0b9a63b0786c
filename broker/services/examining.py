"""Examining a cluster: one that is registered, or one that somebody is about to register."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from broker.domain.gpu_models import GpuModelSpec
from broker.models import Cluster, Lease
from broker.provisioners.base import Unanswered, order_name
from broker.provisioners.kubernetes.cluster import kubeconfig_of
from broker.provisioners.kubernetes.doctor import judging, taking
from broker.provisioners.kubernetes.doctor.findings import Finding, Outcome
from broker.provisioners.kubernetes.doctor.taking import Known
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.choosing import driver_named
from broker.services.catalogue import specs
from tenants.services.walls import as_sweep


def models() -> tuple[GpuModelSpec, ...]:
    """Return every GPU model we know."""
    return tuple(specs().values())


def of_kubeconfig(kubeconfig: Mapping[str, Any], *, driver: SliceDriver, now: datetime) -> list[Finding]:
    """Examine a cluster before it joins: our books say nothing of it."""
    return judging.examine(taking.take(kubeconfig, driver, known=Known(), now=now))


def of_cluster(cluster: Cluster, *, now: datetime) -> list[Finding]:
    """Examine a registered cluster with its own credentials, and compare it with our books."""
    driver = driver_named(cluster.driver, cluster.driver_options, models())
    try:
        kubeconfig = kubeconfig_of(cluster.pk)
    except Unanswered as missing:
        fix = "Renew the cluster's credentials."
        return [Finding(judging.REACHED, Outcome.BAD, str(missing), "Without a way in nothing runs.", fix)]
    known = Known(uid=cluster.uid, orders=_orders())
    return judging.examine(taking.take(kubeconfig, driver, known=known, now=now))


def _orders() -> frozenset[str]:
    """Name every generation of a lease that may have objects in a cluster."""
    with as_sweep():
        held = Lease.objects.holding().values_list("id", "generation")
        return frozenset(order_name(lease_id, generation) for lease_id, generation in held)
