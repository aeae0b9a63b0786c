"""Examining a cluster: one that is registered, or one that somebody is about to register."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction

from broker.domain.gpu_models import GpuModelSpec
from broker.models import Cluster, Examination, Lease
from broker.provisioners.base import Unanswered, order_name
from broker.provisioners.kubernetes.cluster import kubeconfig_of
from broker.provisioners.kubernetes.doctor import judging, taking
from broker.provisioners.kubernetes.doctor.findings import Finding, Outcome
from broker.provisioners.kubernetes.doctor.taking import Known
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.choosing import driver_named
from broker.provisioners.kubernetes.entrances import entrances
from broker.services.catalogue import specs
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep


class Played(Refused):
    code, status, title = "played-cluster", 409, "A simulated cluster has nothing to examine"


def models() -> tuple[GpuModelSpec, ...]:
    """Return every GPU model we know."""
    return tuple(specs().values())


def of_kubeconfig(
    kubeconfig: Mapping[str, Any], *, driver: SliceDriver, now: datetime, tries: str = ""
) -> list[Finding]:
    """Examine a cluster before it joins: our books say nothing of it. Pods of the image `tries` try its network."""
    return judging.examine(taking.take(kubeconfig, driver, known=Known(), now=now, tries=tries))


def of_cluster(cluster: Cluster, *, now: datetime) -> list[Finding]:
    """Examine a registered cluster with its own credentials, and compare it with our books."""
    driver = driver_named(cluster.driver, cluster.driver_options, models())
    try:
        kubeconfig = kubeconfig_of(cluster.pk)
    except Unanswered as missing:
        fix = "Renew the cluster's credentials."
        return [Finding(judging.REACHED, Outcome.BAD, str(missing), "Without a way in nothing runs.", fix)]
    open_to = entrances(cluster.door, cluster.bastion, cluster.entrances)
    known = Known(uid=cluster.uid, orders=_orders(), door=cluster.door, entrances=open_to)
    return judging.examine(taking.take(kubeconfig, driver, known=known, now=now))


@transaction.atomic
def ask_for(cluster: Cluster, *, actor: Actor, now: datetime) -> None:
    """Have a cluster examined by a worker; raises Refused for one that is played."""
    if cluster.provisioner != "kubernetes":
        raise Played(
            f"{cluster.name} is simulated: there is nothing behind it to examine.",
            fix="Add a Kubernetes cluster, and examine that.",
        )
    asked = {"asked_at": now, "asked_by": actor.label, "done_at": None}
    Examination.objects.update_or_create(cluster=cluster, defaults=asked)
    audit.record("cluster.examine", actor=actor, now=now, subject_id=cluster.pk, subject_label=cluster.name)
    doorbell.ring("broker.examine", cluster.pk, now=now)


def carry_out(cluster_id: str, *, now: datetime) -> list[Finding]:
    """Examine a cluster, keep what was found for its page, and return it; no transaction is open while it is asked."""
    cluster = Cluster.objects.get(pk=cluster_id)
    found = of_cluster(cluster, now=now)
    done = {"done_at": now, "findings": [asdict(each) for each in found]}
    Examination.objects.update_or_create(
        cluster=cluster, defaults=done, create_defaults={**done, "asked_at": now}
    )
    return found


def _orders() -> frozenset[str]:
    """Name every generation of a lease that may have objects in a cluster."""
    with as_sweep():
        held = Lease.objects.holding().values_list("id", "generation")
        return frozenset(order_name(lease_id, generation) for lease_id, generation in held)
