"""Two brokers in one cluster, and a replaced cluster, delete nothing foreign."""

from dataclasses import replace

import pytest

from broker.provisioners.base import ClusterUnreachable, ObservedState
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.provisioner import KubernetesProvisioner
from tests.cluster.installed import some_id
from tests.cluster.stages import PLUGIN, KubernetesStage, gone, ready

pytestmark = pytest.mark.cluster


def broker(stage: KubernetesStage, mark: str, *, uid: str = "", reached: int = 0) -> KubernetesProvisioner:
    way = ClusterConnection(stage.transport, PLUGIN, mark, lambda: uid, lambda: reached)
    return KubernetesProvisioner("clu_test", way)


def uid_of(stage: KubernetesStage) -> str:
    return str(stage.plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])


def test_a_broker_neither_lists_nor_removes_objects_of_another_broker(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    mine, other = broker(stage, some_id("ins")), broker(stage, some_id("ins"))
    stage.provisioner = mine
    ready(stage, order)
    assert mine.names() == [order.name]
    assert other.names() == []
    other.remove_named(order.name, now=stage.now)
    assert mine.observe(order, now=stage.now).seen is ObservedState.READY
    theirs = replace(order)  # as if a database had been copied, and its mark replaced
    assert other.ensure(theirs, now=stage.now).seen is ObservedState.REFUSED
    assert mine.observe(order, now=stage.now).seen is ObservedState.READY
    gone(stage, order)


def test_objects_from_before_installation_labels_are_kept_and_end_as_usual(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    ready(stage, order)
    mine = broker(stage, some_id("ins"))
    assert mine.observe(order, now=stage.now).seen is ObservedState.READY
    assert mine.ensure(order, now=stage.now).seen is ObservedState.READY
    assert order.name not in mine.names()  # no sweep takes it: only its lease does
    stage.provisioner = mine
    gone(stage, order)


def test_another_cluster_at_the_same_address_is_treated_as_unreachable(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    astray = broker(stage, "ins_a", uid="another")
    for act in (astray.ensure, astray.observe, astray.remove):
        with pytest.raises(ClusterUnreachable, match="another cluster responds at this address"):
            act(order, now=stage.now)
    with pytest.raises(ClusterUnreachable, match="another cluster"):
        astray.names()
    assert stage.names() == []
    assert broker(stage, "ins_a", uid=uid_of(stage)).observe(order, now=stage.now).seen is ObservedState.GONE


def test_a_cluster_with_an_older_resource_version_raises_cluster_unreachable(kubernetes_stage: KubernetesStage) -> None:
    stage, order = kubernetes_stage, kubernetes_stage.order()
    restored = broker(stage, "ins_a", uid=uid_of(stage), reached=2**60)
    with pytest.raises(ClusterUnreachable, match="its state is older than seen before"):
        restored.observe(order, now=stage.now)


@pytest.mark.deep
def test_a_cluster_with_older_state_is_treated_as_unreachable(
    kubernetes_stage: KubernetesStage,
) -> None:
    stage, order, reached = kubernetes_stage, kubernetes_stage.order(), [0]
    joined = uid_of(stage)
    mine = KubernetesProvisioner(
        "clu_test", ClusterConnection(stage.transport, PLUGIN, uid=lambda: joined, reached=lambda: reached[0])
    )
    stage.provisioner = mine
    ready(stage, order)
    stage.lose_node()  # in an old state nobody has heard of it for long
    assert mine.observe(order, now=stage.now).seen is ObservedState.LOST, "it is sure of the cluster now"
    reached[0] = 2**60
    for ask in (mine.observe, mine.ensure, mine.remove):
        with pytest.raises(ClusterUnreachable, match="its state is older than seen before"):
            ask(order, now=stage.now)
    reached[0] = 0
    stage.find_node()
    gone(stage, order)
