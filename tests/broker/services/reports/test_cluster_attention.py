"""Clusters that need an operator's attention."""

from datetime import timedelta

from django.test import Client
from django.urls import reverse

from broker.models import Cluster, ClusterWatch, Orphan, Volume
from broker.services.clusters import orphan_removal
from broker.services.reports import cluster_attention
from broker.services.reports.attention_items import AttentionItem, AttentionKind
from broker.services.volumes import volume_lifecycle
from config import metrics
from tenants.services.rls import staff_scope, tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant


def find_attention_items(sim: Simulation) -> list[AttentionItem]:
    with staff_scope():
        return cluster_attention.find_troubled_clusters(now=sim.now)


def create_kubernetes_cluster(sim: Simulation) -> Cluster:
    return Cluster.objects.create(
        name="east", region="eu", provisioner="kubernetes", driver="device_plugin", created_at=sim.now
    )


def test_a_simulated_cluster_needs_no_attention(sim: Simulation) -> None:
    create_gpus(1)
    assert find_attention_items(sim) == []


def test_an_agent_silent_for_a_minute_needs_attention(sim: Simulation) -> None:
    cluster = create_kubernetes_cluster(sim)
    later = sim.now + timedelta(seconds=61)
    with staff_scope():
        (need,) = cluster_attention.find_troubled_clusters(now=later)
    assert (need.kind, need.subject, need.urgent) == (AttentionKind.CLUSTER, cluster.pk, True)
    assert "manage.py kube_agent" in need.why
    for kind, ago in (("Pod", 59), ("Node", 200)):
        ClusterWatch.objects.create(
            cluster=cluster,
            kind=kind,
            version=1,
            synced_at=sim.now,
            last_event_at=later - timedelta(seconds=ago),
        )
    with staff_scope():
        assert cluster_attention.find_troubled_clusters(now=later) == []
        (need,) = cluster_attention.find_troubled_clusters(now=later + timedelta(seconds=2))
    assert "sends no heartbeats" in need.why


def test_a_frozen_unreachable_or_paused_cluster_is_reported_once(sim: Simulation) -> None:
    cluster = create_kubernetes_cluster(sim)
    for changes, kind in (
        ({"inventory_paused_reason": "It reports only 1 of 9 GPUs"}, AttentionKind.CLUSTER),
        ({"unreachable_since": sim.now, "unreachable_reason": "no route"}, AttentionKind.CLUSTER),
        ({"frozen": "another cluster responds"}, AttentionKind.FROZEN),
    ):
        Cluster.objects.filter(pk=cluster.pk).update(**changes)
        (need,) = find_attention_items(sim)
        assert (need.kind, need.urgent) == (kind, True)


def test_orphans_are_reported_and_are_urgent_once_they_need_approval(sim: Simulation) -> None:
    Orphan.objects.create(name="l-one-g1", found_at=sim.now)
    Orphan.objects.create(name="l-old-g1", found_at=sim.now, known=True)
    (need,) = find_attention_items(sim)
    assert (need.kind, need.subject, need.urgent) == (AttentionKind.ORPHANS, orphan_removal.SIMULATED, False)
    assert need.what == "1 object in the simulated fleet without a lease"
    Orphan.objects.update(held_at=sim.now)
    (need,) = find_attention_items(sim)
    assert need.urgent
    assert "2 would be deleted at once" in need.why


def test_prometheus_metrics_include_cluster_agents(sim: Simulation) -> None:
    cluster = create_kubernetes_cluster(sim)
    Cluster.objects.filter(pk=cluster.pk).update(frozen="why", created_at=sim.now - timedelta(days=1))
    Orphan.objects.create(name="l-one-g1", found_at=sim.now, cluster=cluster)
    ClusterWatch.objects.create(
        cluster=cluster,
        kind="Pod",
        version=1,
        synced_at=sim.now,
        last_event_at=sim.now - timedelta(seconds=70),
    )
    values = {
        sample.name: (sample.labels, sample.value) for family in metrics.cluster_gauges() for sample in family.samples
    }
    east = {"cluster": "east"}
    assert values == {
        "gpubroker_agent_lag_seconds": (east, 70),
        "gpubroker_agent_down": (east, 1),
        "gpubroker_cluster_frozen": (east, 1),
        "gpubroker_orphans": (east, 1),
    }


def test_the_clusters_page_shows_the_lag_of_an_agent(sim: Simulation, operator: Client) -> None:
    create_gpus(1)
    Cluster.objects.update(provisioner="kubernetes")
    page = reverse("ops-clusters")
    assert "<b>No agent is connected:</b>" in operator.get(page).content.decode()
    for kind, ago in (("Pod", 3), ("Node", 42)):
        last_event_at = sim.now - timedelta(seconds=ago)
        ClusterWatch.objects.create(
            cluster=Cluster.objects.get(), kind=kind, version=1, synced_at=last_event_at, last_event_at=last_event_at
        )
    assert "all watches reported within the last 42 s." in operator.get(page).content.decode()


def test_an_operator_approves_only_the_orphans_that_were_shown(sim: Simulation, operator: Client) -> None:
    first = Orphan.objects.create(name="l-one-g1", found_at=sim.now, held_at=sim.now)
    page = reverse("ops-cluster-orphans-delete", args=[orphan_removal.SIMULATED])
    shown = operator.get(page, follow=True)
    assert "l-one-g1" in shown.content.decode()
    later = Orphan.objects.create(name="l-two-g1", found_at=sim.now, held_at=sim.now)
    answer = operator.post(shown.request["PATH_INFO"] + f"?until={first.pk}", {"reason": "a drill is over"})
    assert answer.status_code == 302
    first.refresh_from_db()
    later.refresh_from_db()
    assert (first.deletion_approved_at is not None, later.deletion_approved_at) == (True, None)


def test_an_operator_unfreezes_a_changed_cluster(sim: Simulation, operator: Client) -> None:
    cluster = create_kubernetes_cluster(sim)
    Cluster.objects.filter(pk=cluster.pk).update(frozen="another cluster responds", uid="old")
    page = reverse("ops-cluster-unfreeze", args=[cluster.pk])
    assert "another cluster responds" in operator.get(page).content.decode()
    owner = create_tenant("Kestrel")
    volume = sim.create_volume(owner)
    with tenant_scope(owner.tenant.pk):
        volume_lifecycle.delete_volume(volume, actor=owner.actor, now=sim.now)
    sim.run(5)
    with tenant_scope(owner.tenant.pk):
        assert Volume.objects.filter(state="deleted", due_at=None).update(cluster=cluster) == 1
    operator.post(page, {"reason": "we rebuilt it ourselves"})
    cluster.refresh_from_db()
    assert (cluster.frozen, cluster.uid) == ("", "")
    with tenant_scope(owner.tenant.pk):
        assert Volume.objects.get().due_at == sim.now  # it may have come back with the cluster
