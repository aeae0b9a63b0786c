"""Operators see what a plan costs and wins, decide about it, and watch it being carried out."""

import re

import pytest
from django.test import Client

from broker.models import Cluster, MovePlan
from tenants.models import AuditEvent
from tenants.services.walls import as_staff
from tests.broker.services.movers import NOTICE_S, apart, moves, no_contradiction
from tests.world import Home, Life, cards, home, offering


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    made = home("Kestrel")
    apart(life, made, home("Merlin"), movable=True)
    return made


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def plan(operator: Client, life: Life) -> MovePlan:
    assert operator.post("/ops/plans/propose/")["Location"] == "/ops/plans/"
    life.run(1)
    return MovePlan.objects.get(state="proposed")


def trail() -> list[tuple[str, str]]:
    with as_staff():
        events = AuditEvent.objects.filter(action__startswith="plan").exclude(action__endswith=".seen")
        return [
            (event.action, event.detail.get("reason", ""))
            for event in events.order_by("at", "id")
            if "path" not in event.detail
        ]


def test_a_plan_is_proposed_accepted_and_carried_out_from_the_pages(
    life: Life, kestrel: Home, operator: Client
) -> None:
    assert "Nothing is proposed" in page(operator, "/ops/plans/")
    assert "Nothing moves before you accept the plan." in page(operator, "/ops/plans/propose/")
    one = f"/ops/plans/{plan(operator, life).pk}/"
    assert one in page(operator, "/ops/plans/")
    shown = page(operator, one)
    assert all(word in shown for word in ("Before and after", "Accept", "Decline", "1 card", "Kestrel"))
    assert "card 0 after: empty" in shown
    assert "Their tenants are told at once" in page(operator, f"{one}accept/")
    operator.post(f"{one}accept/", {"reason": "whole cards are asked for"})
    shown = page(operator, one)
    assert "Its tenants have been told." in shown
    assert "Noticed" in shown
    life.go(NOTICE_S + 60)
    shown = page(operator, one)
    assert all(word in shown for word in ("1 of 1 over", "Move 1 done", "1 of 1 leases moved"))
    assert trail() == [("plans.propose", ""), ("plan.accepted", "whole cards are asked for")]
    no_contradiction(life)


def test_a_plan_for_who_waits_is_asked_for_in_the_control_room_and_drawn(
    life: Life, kestrel: Home, operator: Client
) -> None:
    waits = life.ask(kestrel, offering("card"), name="whole-card")
    life.run(1)
    found = plan(operator, life)
    control = page(operator, "/ops/")
    assert "Moves are proposed for north-1" in control
    assert f"/ops/plans/{found.pk}/" in control
    shown = page(operator, f"/ops/plans/{found.pk}/")
    assert f"Makes room for {waits.offering.label}, which a lease waits for." in shown
    assert all(
        word in shown for word in ("whole-card</a> of Kestrel is queued", "for who waits", ">who waits<")
    )
    assert operator.get(f"/api/v1/ops/plans/{found.pk}").json()["room_for"] == waits.pk


def test_a_phone_shows_where_a_move_comes_from_and_goes_to(
    life: Life, kestrel: Home, operator: Client
) -> None:
    shown = page(operator, f"/ops/plans/{plan(operator, life).pk}/")
    for word in ("From", "To"):
        (cell,) = re.findall(rf'<td class="([^"]*)"><span class="ph-only q">{word} </span>', shown)
        assert "ph-no" not in cell


def test_a_plan_is_declined_with_a_reason_and_proposed_anew(
    life: Life, kestrel: Home, operator: Client
) -> None:
    first = plan(operator, life)
    operator.post("/ops/plans/propose/")
    life.run(1)
    assert MovePlan.objects.get(state="proposed") == first  # it says the same
    assert operator.post(f"/ops/plans/{first.pk}/decline/", {"reason": ""}).status_code == 400
    operator.post(f"/ops/plans/{first.pk}/decline/", {"reason": "not this week"})
    assert "not this week" in page(operator, f"/ops/plans/{first.pk}/")
    assert plan(operator, life) != first
    refused = operator.post(f"/ops/plans/{first.pk}/accept/", {"reason": "after all"})
    assert refused.status_code == 409


def test_a_plan_that_is_outdated_gives_way_to_the_next(life: Life, kestrel: Home, operator: Client) -> None:
    first = plan(operator, life)
    with as_staff():
        (move,) = moves(first)
        lease = move.lease
    life.release(lease)
    life.run(30)
    operator.post("/ops/plans/propose/")
    life.run(1)
    first.refresh_from_db()
    assert (first.state, first.why) == ("declined", "nothing would be won by it any longer")


def test_an_accepted_plan_is_called_off(life: Life, kestrel: Home, operator: Client) -> None:
    found = plan(operator, life)
    operator.post(f"/ops/plans/{found.pk}/accept/", {"reason": "go"})
    assert "Cancel" in page(operator, f"/ops/plans/{found.pk}/")
    operator.post(f"/ops/plans/{found.pk}/cancel/", {"reason": "a launch is on"})
    life.go(10)
    shown = page(operator, f"/ops/plans/{found.pk}/")
    assert all(word in shown for word in ("Cancelled", "called off before it began", "a launch is on"))


def test_what_is_no_plan_is_missing(operator: Client, kestrel: Home) -> None:
    assert operator.get("/ops/plans/mpl_nothing/").status_code == 404


def test_a_cluster_whose_driver_cuts_nothing_is_never_planned(
    life: Life, kestrel: Home, operator: Client
) -> None:
    Cluster.objects.update(driver="device_plugin")
    operator.post("/ops/plans/propose/")
    life.run(1)
    assert not MovePlan.objects.exists()
