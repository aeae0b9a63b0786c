"""Which provisioner makes a lease real: its cluster's own, so one product may have simulated and real clusters."""

from collections.abc import Callable
from functools import cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from broker.models import Cluster
from broker.provisioners.base import Order, Provisioner
from broker.provisioners.frozen import FrozenProvisioner


@cache
def _named(path: str) -> Provisioner:
    return cast(Provisioner, import_string(path)())


@cache
def _of_cluster(path: str, cluster_id: str) -> Provisioner:
    return cast(Callable[[str], Provisioner], import_string(path))(cluster_id)


def simulated() -> Provisioner:
    """Return the provisioner of every cluster that has none of its own: settings.PROVISIONER."""
    return _named(settings.PROVISIONER)


def provisioner_of(order: Order) -> Provisioner:
    """Return the provisioner of the cluster an order was placed in."""
    return _of(order.cluster, order.provisioner, order.frozen)


def provisioner_at(cluster: Cluster) -> Provisioner:
    """Return the provisioner of a cluster, for what belongs to no order."""
    return _of(cluster.pk, cluster.provisioner, cluster.frozen)


def _of(cluster_id: str, name: str, frozen: str) -> Provisioner:
    if frozen:
        return FrozenProvisioner(frozen)
    path = settings.PROVISIONERS.get(name)
    return _of_cluster(path, cluster_id) if path else simulated()


def by_cluster() -> list[tuple[str | None, Provisioner]]:
    """Return the provisioner of every cluster that has its own, and under None the one that all others share."""
    own = Cluster.objects.filter(provisioner__in=settings.PROVISIONERS, frozen="").order_by("id")
    return [
        (None, simulated()),
        *((each.pk, _of_cluster(settings.PROVISIONERS[each.provisioner], each.pk)) for each in own),
    ]
