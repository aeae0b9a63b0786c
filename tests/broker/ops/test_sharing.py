"""Two tenants lie on one card of class soft or none only where its cluster's owner says so."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.test import Client

from broker.domain.states import Isolation, LeaseState
from broker.models import Cluster, Offering
from broker.services import catalogue, joining, switches
from tenants.models import AuditEvent
from tenants.services.walls import as_staff
from tests import world
from tests.broker.services.test_joining import KUBECONFIG
from tests.world import NOW, OPERATOR, Home, Life

pytestmark = pytest.mark.django_db


def trail() -> list[tuple[str, dict[str, Any]]]:
    with as_staff():
        events = AuditEvent.objects.filter(action="cluster.share").order_by("at", "id")
        return [(event.actor_label, event.detail) for event in events]


@pytest.mark.parametrize("shares", [False, True])
def test_a_new_cluster_is_as_this_installation_says(db: None, settings: Any, shares: bool) -> None:
    settings.SHARE_SOFT_CARDS, settings.CREDENTIAL_KEYS = shares, Fernet.generate_key().decode()
    world.cards(1)
    joining.join(name="east", region="eu", kubeconfig=KUBECONFIG, driver="hami", actor=OPERATOR, now=NOW)
    assert [each.shares_soft_cards for each in Cluster.objects.all()] == [shares, shares]


def test_who_waits_for_a_strangers_card_gets_it_as_soon_as_its_owner_allows_it(life: Life) -> None:
    world.cards(1)
    quarter = world.soft_offering()
    first = life.lease(world.home("Kestrel"), quarter)
    second = life.ask(world.home("Swift"), quarter)
    life.run(1)
    assert world.fresh(second).state == LeaseState.QUEUED
    cluster = Cluster.objects.get()
    assert switches.turn(switches.SHARES, cluster, True, why="all of one house", actor=OPERATOR, now=life.now)
    life.run(30)
    assert world.fresh(second).state == LeaseState.ACTIVE
    assert world.held(second)[0].gpu_id == world.held(first)[0].gpu_id
    assert not switches.turn(switches.SHARES, cluster, True, why="again", actor=OPERATOR, now=life.now)
    told = {"before": False, "after": True, "reason": "all of one house"}
    assert trail() == [(OPERATOR.label, told)]


def test_kept_apart_again_nobody_new_comes_beside_and_nobody_is_thrown_out(life: Life) -> None:
    world.cards(1)
    Cluster.objects.update(shares_soft_cards=True)
    quarter = world.soft_offering()
    both = [life.lease(world.home(name), quarter) for name in ("Kestrel", "Swift")]
    hints = len(life.hints)
    assert switches.turn(
        switches.SHARES, Cluster.objects.get(), False, why="no longer", actor=OPERATOR, now=life.now
    )
    assert len(life.hints) == hints
    third = life.ask(world.home("Merlin"), quarter)
    life.run(30)
    assert world.fresh(third).state == LeaseState.QUEUED
    assert {world.fresh(lease).state for lease in both} == {LeaseState.ACTIVE}


def test_operators_say_it_on_the_page_of_clusters_with_a_reason(kestrel: Home, operator: Client) -> None:
    cluster = Cluster.objects.get()
    here = f"/ops/clusters/{cluster.pk}"
    for step, verb, words, shares in (
        ("share", "Let them share", "never share its soft cards", True),
        ("unshare", "Keep them apart", "may share its soft cards", False),
    ):
        shown = operator.get("/ops/clusters/").content.decode()
        assert f"{here}/{step}/" in shown
        assert words in shown
        assert verb in operator.get(f"{here}/{step}/").content.decode()
        assert operator.post(f"{here}/{step}/", {"reason": " "}).status_code == 400
        assert operator.post(f"{here}/{step}/", {"reason": "as agreed"})["Location"] == "/ops/clusters/"
        assert Cluster.objects.get().shares_soft_cards is shares
        assert operator.post(f"{here}/{step}/", {"reason": "as agreed"}).status_code == 302
    assert [detail["after"] for _, detail in trail()] == [True, False]
    assert operator.get("/ops/clusters/clu_nobody/share/").status_code == 404


def shares_offered() -> set[tuple[str, str]]:
    rows = Offering.objects.filter(isolation__in=["soft", "none"])
    return set(rows.values_list("isolation", "profile"))


def test_shares_are_drafted_where_a_clusters_driver_makes_them_for_each_lease(kestrel: Home) -> None:
    catalogue.derive_offerings(now=NOW)
    assert shares_offered() == set()
    Cluster.objects.update(driver="hami")
    assert catalogue.derive_offerings(now=NOW) == 4
    assert shares_offered() == {("soft", "half"), ("soft", "quarter")}
    Offering.objects.filter(isolation=Isolation.SOFT).delete()
    Cluster.objects.update(driver="device_plugin")
    assert catalogue.derive_offerings(now=NOW) == 0


def test_operators_who_derive_get_the_shares_of_simulated_cards_as_drafts(
    kestrel: Home, operator: Client
) -> None:
    operator.post("/ops/offerings/derive/")
    assert shares_offered() == {(how, part) for how in ("soft", "none") for part in ("half", "quarter")}
    drafted = Offering.objects.filter(isolation__in=["soft", "none"])
    assert set(drafted.values_list("state", flat=True)) == {"draft"}
    quarter = drafted.get(isolation="soft", profile="quarter", price_class="on_demand")
    assert (quarter.memory_gb, quarter.milli_units) == (20, 1750)
