"""How a cluster's nodes and cards become inventory, and stay what the cluster says."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.domain.published import published
from broker.domain.states import Isolation
from broker.models import Allocation, Cluster, ClusterCredential, Gpu, Lease, Node, Offering, OfferingState
from broker.provisioners.kubernetes.inventory import CardFound, Cut, NodeFound
from broker.services import catalogue, joining
from broker.services.contradicting import QUARANTINED
from broker.services.leases import serving
from ports import ids, seal
from tenants.models.audit import AuditEvent
from tenants.services.refusals import Invalid, Stale
from tenants.services.walls import as_staff, as_tenant
from tests.world import MODEL, NOW, OPERATOR, Life, fresh, held, home, offering

KUBECONFIG = {
    "clusters": [{"name": "cluster", "cluster": {"server": "https://one.example"}}],
    "users": [{"name": "cluster", "user": {"token": "first"}}],
}
WHOLE = (Cut(0, 8, "card"),)


@pytest.fixture
def cluster(db: None, settings: Any) -> Cluster:
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    return joining.join(
        name="east", region="eu", kubeconfig=KUBECONFIG, driver="device_plugin", actor=OPERATOR, now=NOW
    )


def card(index: int = 0, **changes: Any) -> CardFound:
    found = {"uuid": f"n1/{index}", "model": MODEL, "isolation": Isolation.DEVICE, "cuts": WHOLE, **changes}
    return CardFound(index=index, **found)


def take(cluster: Cluster, *cards: CardFound, problems: tuple[str, ...] = ()) -> list[str]:
    return joining.take_inventory(cluster, [NodeFound("n1", cards, problems)], now=NOW)


def test_new_credentials_replace_the_old(cluster: Cluster) -> None:
    way = {**KUBECONFIG, "clusters": [{"name": "cluster", "cluster": {"server": "https://two.example"}}]}
    joining.renew(cluster, way, actor=OPERATOR, now=NOW)
    cluster.refresh_from_db()
    assert cluster.address == "https://two.example"
    assert b"two.example" in seal.opened(bytes(ClusterCredential.objects.get().sealed))


def test_without_a_key_no_cluster_joins(cluster: Cluster, settings: Any) -> None:
    settings.CREDENTIAL_KEYS = ""
    with pytest.raises(seal.Unsealable):
        joining.join(name="west", region="eu", kubeconfig=KUBECONFIG, driver="dra", actor=OPERATOR, now=NOW)
    assert not Cluster.objects.filter(name="west").exists()


def test_what_a_node_reports_becomes_inventory_once(cluster: Cluster) -> None:
    for _ in range(2):
        assert take(cluster, card(0), card(1, cuts=(), uuid="GPU-real")) == []
    node = Node.objects.get()
    fixed, dynamic = Gpu.objects.order_by("index")
    assert (fixed.uuid, fixed.layout_policy) == (f"{node.pk}/0", "fixed")
    assert fixed.fixed_layout == [{"profile": "card", "start": 0, "size": 8, "isolation": "device"}]
    assert (dynamic.uuid, dynamic.layout_policy, dynamic.version) == ("GPU-real", "dynamic", 1)


def test_a_name_of_its_own_by_which_a_node_gives_slices_is_kept_with_them(cluster: Cluster) -> None:
    """Its labels say how cards are shared, and a lease is rendered long after they were read."""
    halves = (Cut(0, 4, "half"), Cut(4, 4, "half"))
    shared = card(0, isolation=Isolation.SOFT, cuts=halves, asks="nvidia.com/gpu")
    assert take(cluster, shared) == []
    assert [cut["asks"] for cut in Gpu.objects.get().fixed_layout] == ["nvidia.com/gpu"] * 2
    take(cluster, card(0, isolation=Isolation.SOFT, cuts=halves))
    assert "asks" not in Gpu.objects.get().fixed_layout[0]


def test_what_a_card_publishes_is_kept_until_it_publishes_all_again(cluster: Cluster) -> None:
    told = published({"1g.10gb": [0, 1]})
    for publishes, kept in ((told, {"1g.10gb": [0, 1]}), (published({}), {}), (None, None)):
        for _ in range(2):
            assert take(cluster, card(0, cuts=(), uuid="GPU-real", published=publishes)) == []
        assert Gpu.objects.get().published == kept
    assert Gpu.objects.get().version == 3
    assert Gpu.objects.filter(published__isnull=True).exists()


def test_cards_of_one_moment_have_their_ids_in_their_own_order(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among equal cards the one with the first id is sold first: chance is not to decide that."""
    monkeypatch.setattr(ids.clock, "milliseconds", lambda: 1_800_000_000_000)
    found = [
        NodeFound(f"n{node}", tuple(card(index, uuid="") for index in range(8)), ()) for node in range(4)
    ]
    joining.take_inventory(cluster, found, now=NOW)
    assert [node.name for node in Node.objects.order_by("id")] == ["n0", "n1", "n2", "n3"]
    places = Gpu.objects.order_by("id").values_list("node__name", "index")
    assert list(places) == [(f"n{node}", index) for node in range(4) for index in range(8)]


def test_a_card_that_was_cut_anew_has_its_new_places(cluster: Cluster) -> None:
    take(cluster, card())
    take(cluster, card(cuts=(Cut(0, 4, "3g.40gb"),), isolation=Isolation.HARDWARE))
    changed = Gpu.objects.get()
    assert (changed.fixed_layout[0]["profile"], changed.version) == ("3g.40gb", 2)


ONES = tuple(Cut(start, 1, "1g.10gb") for start in range(7))


def cut(index: int, cuts: tuple[Cut, ...] = ONES, **changes: Any) -> CardFound:
    return card(index, cuts=cuts, isolation=Isolation.HARDWARE, **changes)


@pytest.fixture
def leased(cluster: Cluster, life: Life) -> Lease:
    """A lease on the last slice of the first of two cards; the others before it were let go."""
    take(cluster, cut(0), cut(1))
    catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    kestrel = home("Kestrel")
    leases = [life.ask(kestrel, offering("1g.10gb")) for _ in range(7)]
    assert serving.serve((MODEL, "eu"), now=life.now) == 7
    last = next(lease for lease in leases if held(lease)[0].placement.lower == 6)
    with as_tenant(kestrel.tenant.pk):
        Allocation.objects.exclude(lease=last).update(released_at=life.now)
    return last


@pytest.mark.parametrize(
    "reported",
    [
        (cut(0, ONES[:4]), cut(1, ONES[:3])),
        (cut(0, (Cut(0, 4, "3g.40gb"), Cut(4, 4, "3g.40gb"))), cut(1)),
        (card(0), cut(1)),
        (cut(0, model="A100-80GB"), cut(1)),
    ],
)
def test_a_report_that_has_no_place_for_a_lease_changes_nothing_and_nothing_new_is_placed(
    cluster: Cluster, leased: Lease, reported: tuple[CardFound, ...]
) -> None:
    before = list(Gpu.objects.order_by("index").values_list("gpu_model_id", "fixed_layout"))
    problems = take(cluster, *reported)
    assert len(problems) == 1
    assert "card 0 has no 1g.10gb at 6" in problems[0]
    assert list(Gpu.objects.order_by("index").values_list("gpu_model_id", "fixed_layout")) == before
    assert not Gpu.objects.sellable().exists()
    assert set(Gpu.objects.values_list("health_reason", flat=True)) == {QUARANTINED}
    assert fresh(leased).state in ("provisioning", "active")
    assert take(cluster, *reported) == problems


def test_a_node_is_sold_again_once_its_report_agrees_with_its_leases(cluster: Cluster, leased: Lease) -> None:
    take(cluster, cut(0, ONES[:4]), cut(1))
    assert not Gpu.objects.sellable().exists()
    take(cluster, cut(0), cut(1))
    assert Gpu.objects.sellable().count() == 2


def test_a_node_is_sold_as_it_is_once_its_leases_have_ended(cluster: Cluster, leased: Lease) -> None:
    take(cluster, cut(0, ONES[:4]), cut(1))
    with as_tenant(leased.tenant_id):
        Allocation.objects.update(released_at=NOW + timedelta(hours=1))
    assert take(cluster, cut(0, ONES[:4]), cut(1)) == []
    assert Gpu.objects.sellable().count() == 2
    assert len(Gpu.objects.get(index=0).fixed_layout) == 4


def test_a_cut_that_keeps_every_leased_place_is_believed(cluster: Cluster, leased: Lease) -> None:
    assert take(cluster, cut(0, ONES[4:]), cut(1, ONES[:3])) == []
    assert [len(each.fixed_layout) for each in Gpu.objects.order_by("index")] == [3, 3]


def test_a_card_no_longer_reported_is_out_of_the_pool_until_it_is(cluster: Cluster) -> None:
    take(cluster, card(0), card(1))
    take(cluster, card(0))
    assert Gpu.objects.get(index=1).health_reason == joining.GONE
    assert Gpu.objects.sellable().count() == 1
    take(cluster, card(0), card(1))
    assert Gpu.objects.sellable().count() == 2


def test_a_card_that_its_node_calls_broken_is_out_of_the_pool(cluster: Cluster) -> None:
    take(cluster, card(healthy=False))
    take(cluster, card())  # what an operator or its node said stands until an operator looks
    assert Gpu.objects.get().health == "unhealthy"


def test_an_inventory_in_which_little_is_new_asks_for_few_rows_and_writes_only_that(cluster: Cluster) -> None:
    def fleet(*broken: str) -> list[NodeFound]:
        names = [f"n{number}" for number in range(60)]
        return [
            NodeFound(name, tuple(card(i, healthy=name not in broken) for i in range(2))) for name in names
        ]

    def statements(*broken: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            joining.take_inventory(cluster, fleet(*broken), now=NOW)
        return len(asked)

    assert statements() < 20  # 120 cards are new
    assert statements() < 12
    statements("n7")
    assert set(Gpu.objects.filter(health="unhealthy").values_list("node__name", "index")) == {
        ("n7", 0),
        ("n7", 1),
    }
    for _ in range(2):
        joining.take_inventory(cluster, fleet()[:59], now=NOW)
    assert Gpu.objects.filter(health_reason=joining.GONE).values_list("node__name").distinct().get() == (
        "n59",
    )


def test_a_node_that_is_being_cut_anew_is_not_believed(cluster: Cluster) -> None:
    take(cluster, card(0), card(1))
    Gpu.objects.filter(index=0).update(closed_since=NOW)
    assert take(cluster, card(0, cuts=()), problems=("half of it is gone",)) == []
    assert Gpu.objects.filter(health="healthy", layout_policy="fixed").count() == 2


def test_what_cannot_be_sold_is_told_with_its_node(cluster: Cluster) -> None:
    assert take(cluster, problems=("cards of no model we know",)) == ["n1: cards of no model we know"]


@pytest.mark.parametrize(("problems", "for_sale"), [((), 12), (("slices have replicas",), 0)])
def test_what_nodes_say_may_be_shared_is_not_sold_on_until_somebody_looks(
    cluster: Cluster, problems: tuple[str, ...], for_sale: int
) -> None:
    """A list from which all is missing at once waits for a person, but not where each node says why."""
    take(cluster, *(card(index) for index in range(12)))
    told = take(cluster, problems=problems)
    cluster.refresh_from_db()
    assert bool(cluster.halted) is not bool(problems)
    assert told == ([f"n1: {each}" for each in problems] or [cluster.halted])
    assert Gpu.objects.filter(health="healthy").count() == for_sale


WAY = joining.WayIn("leases.example.org", "ingress/public", "ssh.example.org:2222", "edge ssh")


def let_in(cluster: Cluster, way: joining.WayIn, *, version: int | None = None) -> None:
    seen = Cluster.objects.get(pk=cluster.pk).version if version is None else version
    joining.let_in(cluster, way, version=seen, actor=OPERATOR, now=NOW)


@pytest.mark.parametrize(
    "way", [WAY, joining.WayIn(), joining.WayIn("a.b", "gateway/edge/public"), joining.WayIn(bastion="jump")]
)
def test_how_people_come_in_is_kept_and_recorded(way: joining.WayIn, cluster: Cluster) -> None:
    let_in(cluster, way)
    kept = Cluster.objects.get(pk=cluster.pk)
    assert joining.WayIn(kept.domain, kept.door, kept.bastion, kept.entrances) == way
    with as_staff():
        (told,) = AuditEvent.objects.filter(action="cluster.let_in")
    assert way.bastion in str(told.detail)


@pytest.mark.parametrize(
    ("field", "way"),
    [
        ("domain", joining.WayIn("no domain", "ingress/public")),
        ("domain", joining.WayIn("https://leases.example", "ingress/public")),
        ("domain", joining.WayIn("", "ingress/public")),
        ("door", joining.WayIn("leases.example", "")),
        ("door", joining.WayIn("leases.example", "node-port/x")),
        ("door", joining.WayIn("leases.example", "gateway/only-one")),
        ("bastion", joining.WayIn(bastion="-oProxyCommand=evil")),
        ("bastion", joining.WayIn(bastion="host;rm -rf")),
        ("entrances", joining.WayIn(entrances="Edge")),
        ("entrances", joining.WayIn(entrances="edge ../kube-system")),
        ("entrances", joining.WayIn(entrances="gt-01m7ytenants")),
        ("entrances", joining.WayIn(entrances="a b c d e")),
    ],
)
def test_a_way_in_that_leads_nowhere_is_refused(field: str, way: joining.WayIn, cluster: Cluster) -> None:
    with pytest.raises(Invalid) as refused:
        let_in(cluster, way)
    assert refused.value.field == field


def test_who_saw_an_older_version_changes_no_way_in(cluster: Cluster) -> None:
    let_in(cluster, WAY)
    with pytest.raises(Stale):
        let_in(cluster, joining.WayIn(), version=1)
    assert Cluster.objects.get(pk=cluster.pk).door == "ingress/public"


def test_entrances_are_kept_in_one_way_however_they_were_written(cluster: Cluster) -> None:
    let_in(cluster, replace(WAY, entrances=" ssh,edge , ssh"))
    assert Cluster.objects.get(pk=cluster.pk).entrances == "edge ssh"


def test_how_cards_are_linked_is_kept_and_what_nobody_could_mean_is_not(cluster: Cluster) -> None:
    take(cluster, card(0, fabric="6f3c.1", numa="pci0000:15"), card(1, fabric="a\0b", numa="n" * 65))
    assert list(Gpu.objects.order_by("index").values_list("fabric", "numa")) == [
        ("6f3c.1", "pci0000:15"),
        ("", ""),
    ]
    take(cluster, card(0), card(1))
    assert set(Gpu.objects.values_list("fabric", "numa")) == {("", "")}
