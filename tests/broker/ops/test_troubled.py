"""What operators are told of clusters that are frozen, silent, followed by nobody or full of strangers."""

from datetime import timedelta

from django.test import Client
from django.urls import reverse

from broker.models import Cluster, ClusterWatch, Orphan, Volume
from broker.services import orphans
from broker.services.fleet import troubled
from broker.services.fleet.needs import Kind, Need
from broker.services.volumes import keeping
from config import metrics
from tenants.services.walls import as_staff, as_tenant
from tests.world import Life, cards, home


def look(life: Life) -> list[Need]:
    with as_staff():
        return troubled.clusters(now=life.now)


def real(life: Life) -> Cluster:
    return Cluster.objects.create(
        name="east", region="eu", provisioner="kubernetes", driver="device_plugin", created_at=life.now
    )


def test_a_simulated_fleet_troubles_nobody(life: Life) -> None:
    cards(1)
    assert look(life) == []


def test_a_cluster_whose_agent_is_silent_for_a_minute_needs_somebody(life: Life) -> None:
    cluster = real(life)
    later = life.now + timedelta(seconds=61)
    with as_staff():
        (need,) = troubled.clusters(now=later)
    assert (need.kind, need.subject, need.urgent) == (Kind.CLUSTER, cluster.pk, True)
    assert "manage.py kube_agent" in need.why
    for kind, ago in (("Pod", 59), ("Node", 200)):
        ClusterWatch.objects.create(
            cluster=cluster,
            kind=kind,
            version=1,
            synced_at=life.now,
            heard_at=later - timedelta(seconds=ago),
        )
    with as_staff():
        assert troubled.clusters(now=later) == []
        (need,) = troubled.clusters(now=later + timedelta(seconds=2))
    assert "writes nothing" in need.why


def test_a_cluster_that_is_frozen_silent_or_halted_says_so_once(life: Life) -> None:
    cluster = real(life)
    for changes, kind in (
        ({"halted": "It reports only 1 of 9 cards"}, Kind.CLUSTER),
        ({"silent_since": life.now, "silent_why": "no route"}, Kind.CLUSTER),
        ({"frozen": "another cluster answers"}, Kind.FROZEN),
    ):
        Cluster.objects.filter(pk=cluster.pk).update(**changes)
        (need,) = look(life)
        assert (need.kind, need.urgent) == (kind, True)


def test_what_belongs_to_no_lease_is_told_and_is_urgent_once_it_waits_for_a_word(life: Life) -> None:
    Orphan.objects.create(name="l-one-g1", found_at=life.now)
    Orphan.objects.create(name="l-old-g1", found_at=life.now, known=True)
    (need,) = look(life)
    assert (need.kind, need.subject, need.urgent) == (Kind.ORPHANS, orphans.SIMULATED, False)
    assert need.what == "1 object in the simulated fleet without a lease"
    Orphan.objects.update(held_at=life.now)
    (need,) = look(life)
    assert need.urgent
    assert "2 would go at once" in need.why


def test_prometheus_is_told_how_clusters_are_followed(life: Life) -> None:
    cluster = real(life)
    Cluster.objects.filter(pk=cluster.pk).update(frozen="why", created_at=life.now - timedelta(days=1))
    Orphan.objects.create(name="l-one-g1", found_at=life.now, cluster=cluster)
    ClusterWatch.objects.create(
        cluster=cluster,
        kind="Pod",
        version=1,
        synced_at=life.now,
        heard_at=life.now - timedelta(seconds=70),
    )
    told = {
        sample.name: (sample.labels, sample.value)
        for family in metrics.clusters()
        for sample in family.samples
    }
    east = {"cluster": "east"}
    assert told == {
        "gpubroker_agent_lag_seconds": (east, 70),
        "gpubroker_agent_silent": (east, 1),
        "gpubroker_cluster_frozen": (east, 1),
        "gpubroker_orphans": (east, 1),
    }


def test_the_page_of_clusters_says_how_far_behind_an_agent_is(life: Life, operator: Client) -> None:
    cards(1)
    Cluster.objects.update(provisioner="kubernetes")
    page = reverse("ops-clusters")
    assert "<b>No agent follows it:</b>" in operator.get(page).content.decode()
    for kind, ago in (("Pod", 3), ("Node", 42)):
        heard_at = life.now - timedelta(seconds=ago)
        ClusterWatch.objects.create(
            cluster=Cluster.objects.get(), kind=kind, version=1, synced_at=heard_at, heard_at=heard_at
        )
    assert "every watch of it was heard within the last 42 s." in operator.get(page).content.decode()


def test_an_operator_agrees_to_what_was_shown_and_to_nothing_later(life: Life, operator: Client) -> None:
    first = Orphan.objects.create(name="l-one-g1", found_at=life.now, held_at=life.now)
    page = reverse("ops-orphans", args=[orphans.SIMULATED])
    shown = operator.get(page, follow=True)
    assert "l-one-g1" in shown.content.decode()
    later = Orphan.objects.create(name="l-two-g1", found_at=life.now, held_at=life.now)
    answer = operator.post(shown.request["PATH_INFO"] + f"?until={first.pk}", {"reason": "a drill is over"})
    assert answer.status_code == 302
    first.refresh_from_db()
    later.refresh_from_db()
    assert (first.agreed_at is not None, later.agreed_at) == (True, None)


def test_an_operator_takes_a_changed_cluster_as_it_is(life: Life, operator: Client) -> None:
    cluster = real(life)
    Cluster.objects.filter(pk=cluster.pk).update(frozen="another cluster answers", uid="old")
    page = reverse("ops-cluster-thaw", args=[cluster.pk])
    assert "another cluster answers" in operator.get(page).content.decode()
    owner = home("Kestrel")
    volume = life.volume(owner)
    with as_tenant(owner.tenant.pk):
        keeping.delete(volume, actor=owner.actor, now=life.now)
    life.run(5)
    with as_tenant(owner.tenant.pk):
        assert Volume.objects.filter(state="deleted", due_at=None).update(cluster=cluster) == 1
    operator.post(page, {"reason": "we rebuilt it ourselves"})
    cluster.refresh_from_db()
    assert (cluster.frozen, cluster.uid) == ("", "")
    with as_tenant(owner.tenant.pk):
        assert Volume.objects.get().due_at == life.now  # it may have come back with the cluster
