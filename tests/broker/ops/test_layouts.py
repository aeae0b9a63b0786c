"""Operators see how nodes are cut, decide about plans, and find every decision in the trail."""

import pytest
from django.test import Client

from broker import tasks
from broker.domain.repartition import Step
from broker.models import Cluster, Gpu, LayoutChange, Node
from broker.services import switches
from broker.services.fleet import cards
from broker.services.fleet.needs import _nodes
from broker.services.fleet.uses import Use
from broker.services.leases.request import PlacementImpossible
from tenants.models import AuditEvent
from tenants.services.walls import as_staff
from tests.broker.services.layouts import Driver, ail, fixed, proposed
from tests.world import OPERATOR, Home, Life, fresh, home, offering


@pytest.fixture
def node(life: Life) -> Node:
    return fixed()[0]


@pytest.fixture
def kestrel(node: Node, life: Life) -> Home:
    """Somebody who waits for a shape that no card is cut into."""
    made = home("Kestrel")
    life.ask(made, offering("3g.40gb"), quantity=2)
    life.run(180)
    return made


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def trail() -> list[tuple[str, str, str]]:
    with as_staff():
        events = AuditEvent.objects.filter(action__startswith="layout").exclude(action__endswith=".seen")
        return [
            (event.action, event.actor_label, event.detail.get("reason", ""))
            for event in events.order_by("at", "id")
            if "path" not in event.detail
        ]


def test_a_plan_is_asked_for_approved_and_carried_out_from_the_pages(
    life: Life, node: Node, kestrel: Home, operator: Client
) -> None:
    Cluster.objects.update(recuts=False)
    here = f"/ops/clusters/{node.cluster_id}/layouts/"
    assert here in page(operator, "/ops/clusters/")
    shown = page(operator, here)
    assert "2 cards of 7 × 1g.10gb" in shown
    assert "asked for: 2 × 3g.40gb" in shown
    assert "A plan changes nothing until you approve it." in page(operator, f"{here}plan/")
    assert operator.post(f"{here}plan/")["Location"] == here
    life.run(1)
    change = LayoutChange.objects.get()
    assert "1 card of 2 × 3g.40gb" in page(operator, here)
    one = f"/ops/layouts/{change.pk}/"
    assert "Approve" in page(operator, one)
    assert "nobody is thrown out" in page(operator, f"{one}approve/")
    operator.post(f"{one}approve/", {"reason": "they have waited long enough"})
    driver = Driver(life, change)
    driver.until(Step.DONE)
    shown = page(operator, one)
    assert all(
        word in shown for word in ("Draining", "Cutting", "Done", "the node offers exactly what was wanted")
    )
    assert "they have waited long enough" in shown
    assert trail() == [
        ("layouts.plan", "operator@example.org", ""),
        ("layout.closing", "operator@example.org", "they have waited long enough"),
    ]
    assert "Cut now" in page(operator, here)


def test_operators_let_plans_begin_by_themselves_and_who_was_refused_is_served(
    life: Life, node: Node, operator: Client
) -> None:
    Cluster.objects.update(recuts=False)
    swift, here = home("Swift"), f"/ops/clusters/{node.cluster_id}/layouts/"
    with pytest.raises(PlacementImpossible):
        life.ask(swift, offering("3g.40gb"), quantity=2)
    assert f"{here}begin/" in page(operator, here)
    assert "nobody is thrown out" in page(operator, f"{here}begin/")
    assert operator.post(f"{here}begin/", {"reason": " "}).status_code == 400
    assert operator.post(f"{here}begin/", {"reason": "it is theirs"})["Location"] == here
    assert operator.post(f"{here}begin/", {"reason": "it is theirs"}).status_code == 302
    waiting = life.ask(swift, offering("3g.40gb"), quantity=2)
    life.run(180)
    tasks.plan_layouts(node.cluster_id)
    life.go(180)
    assert fresh(waiting).state == "active"
    assert f"{here}wait/" in page(operator, here)
    assert "refused at once" in page(operator, f"{here}wait/")
    operator.post(f"{here}wait/", {"reason": "no longer"})
    assert not Cluster.objects.get().recuts
    begun = [(action, reason) for action, _, reason in trail() if action == "layouts.begin"]
    assert begun == [("layouts.begin", "it is theirs"), ("layouts.begin", "no longer")]
    assert operator.get("/ops/clusters/clu_x/layouts/begin/").status_code == 404


def test_who_lets_plans_begin_has_the_cluster_planned_at_once(life: Life, node: Node) -> None:
    hint = ("broker.plan_layouts", node.cluster_id)
    for recuts in (False, True):
        switches.turn(switches.RECUTS, node.cluster, recuts, why="as agreed", actor=OPERATOR, now=life.now)
        assert (hint in {each[2:4] for each in life.hints}) is recuts


def test_a_change_is_called_off_with_a_reason(
    life: Life, node: Node, kestrel: Home, operator: Client
) -> None:
    change = proposed(node, life)
    one = f"/ops/layouts/{change.pk}/"
    assert "Call it off" in page(operator, one)
    assert operator.post(f"{one}cancel/", {"reason": ""}).status_code == 400
    operator.post(f"{one}cancel/", {"reason": "not this week"})
    change.refresh_from_db()
    assert (change.step, change.why) == (Step.CANCELLED, "not this week")
    refused = operator.post(f"{one}approve/", {"reason": "after all"})
    assert refused.status_code == 409
    assert "cancelled, not planned" in refused.content.decode()


@pytest.mark.parametrize(("verb", "cut"), [("again", "3g.40gb"), ("back", "1g.10gb")])
def test_what_is_quarantined_is_decided_on_its_page(
    life: Life, node: Node, kestrel: Home, operator: Client, verb: str, cut: str
) -> None:
    ail(node, "fails")
    change = proposed(node, life)
    one = f"/ops/layouts/{change.pk}/"
    operator.post(f"{one}approve/", {"reason": "go"})
    Driver(life, change).until(Step.QUARANTINED)
    assert "It failed, and the node stays closed." in page(operator, one)
    assert "Quarantined" in page(operator, f"/ops/clusters/{node.cluster_id}/layouts/")
    with as_staff():
        (need,) = [each for each in _nodes(cards.load()) if each.urgent]
        assert {card.idle_use for card in cards.load()} == {Use.UNHEALTHY}
    assert (need.what, need.subject) == ("mig-1 / n01 is quarantined", node.pk)
    assert page(operator, f"{one}{verb}/")
    operator.post(f"{one}{verb}/", {"reason": "a screw was loose"})
    Driver(life, LayoutChange.objects.order_by("planned_at").last() or change).until(Step.DONE)
    assert {each["profile"] for card in Gpu.objects.all() for each in card.fixed_layout} >= {cut}


def test_a_cluster_without_fixed_cuts_says_so(life: Life, node: Node, operator: Client) -> None:
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[])
    here = f"/ops/clusters/{node.cluster_id}/layouts/"
    assert "Nothing here is cut in advance" in page(operator, here)
    assert here not in page(operator, "/ops/clusters/")
    assert "begin by themselves" in page(operator, f"{here}plan/")


def test_what_is_not_there_is_missing(operator: Client) -> None:
    for path in ("/ops/layouts/lch_x/", "/ops/clusters/clu_x/layouts/"):
        assert operator.get(path).status_code == 404


def test_waiting_for_leases_is_told(life: Life, node: Node, kestrel: Home, operator: Client) -> None:
    life.lease(kestrel, offering("1g.10gb"), max_duration_s=1200)
    change = proposed(node, life)
    operator.post(f"/ops/layouts/{change.pk}/approve/", {"reason": "go"})
    driver = Driver(life, change)
    driver.on()
    driver.on()
    with as_staff():
        assert {card.idle_use for card in cards.load()} == {Use.MAINTENANCE}
    assert "Waiting for the last lease to end by itself." in page(operator, f"/ops/layouts/{change.pk}/")
