"""The provisioner of each cluster, so that simulated and real clusters can coexist."""

from collections.abc import Callable
from functools import cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from broker.models import Cluster
from broker.provisioners.base import Provisioner, ProvisionSpec
from broker.provisioners.frozen import FrozenProvisioner


@cache
def _load_shared(path: str) -> Provisioner:
    return cast(Provisioner, import_string(path)())


@cache
def _load_for_cluster(path: str, cluster_id: str) -> Provisioner:
    return cast(Callable[[str], Provisioner], import_string(path))(cluster_id)


def shared_provisioner() -> Provisioner:
    """Return the provisioner shared by clusters without their own: settings.PROVISIONER."""
    return _load_shared(settings.PROVISIONER)


def provisioner_of(spec: ProvisionSpec) -> Provisioner:
    """Return the provisioner of the cluster a spec was placed in."""
    return _select_provisioner(spec.cluster, spec.provisioner, spec.frozen)


def provisioner_of_cluster(cluster: Cluster) -> Provisioner:
    """Return the provisioner of a cluster, for objects that belong to no lease."""
    return _select_provisioner(cluster.pk, cluster.provisioner, cluster.frozen)


def _select_provisioner(cluster_id: str, name: str, frozen: str) -> Provisioner:
    if frozen:
        return FrozenProvisioner(frozen)
    path = settings.PROVISIONERS.get(name)
    return _load_for_cluster(path, cluster_id) if path else shared_provisioner()


def provisioners_by_cluster() -> list[tuple[str | None, Provisioner]]:
    """Return the provisioners by cluster id; None is the shared one."""
    own = Cluster.objects.filter(provisioner__in=settings.PROVISIONERS, frozen="").order_by("id")
    return [
        (None, shared_provisioner()),
        *((each.pk, _load_for_cluster(settings.PROVISIONERS[each.provisioner], each.pk)) for each in own),
    ]
