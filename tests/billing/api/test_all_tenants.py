"""Operators read leases, places, cards, offerings, prices, payments and proofs of all tenants over the API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.services import rating
from broker.domain.states import LeaseState
from broker.models import Gpu, Offering
from tenants.domain.roles import Role
from tenants.models import AuditEvent, User
from tenants.services.walls import as_staff
from tests.billing.histories import ran, runs
from tests.billing.portal.desks import EURO, Desk, opened
from tests.world import home, offering

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(settings: Any) -> Iterator[Desk]:
    settings.OPERATORS_NEED_MFA = False
    with opened() as made:
        yield made


@pytest.fixture
def operator(desk: Desk) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def read(client: Client, path: str, *, status: int = 200) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == status, answer.content
    return answer.json()


def items(client: Client, path: str) -> list[Any]:
    return list(read(client, path)["items"])


def test_the_queue_of_all_tenants_comes_oldest_first_in_pages(desk: Desk, operator: Client) -> None:
    tern = home("Tern")
    desk.life.lease(desk.owner, offering())  # so that no node is free for all of its cards
    asked = []
    for owner in (desk.owner, tern, desk.owner):
        asked.append(
            desk.life.lease(owner, offering("card"), LeaseState.QUEUED, quantity=8, same_node=True).pk
        )
        desk.life.run(60)
    first = read(operator, "ops/leases?state=queued&sort=since&limit=2")
    rest = read(operator, f"ops/leases?state=queued&sort=since&limit=2&cursor={first['next_cursor']}")
    shown = first["items"] + rest["items"]
    assert [lease["id"] for lease in shown] == asked
    assert [lease["tenant"]["name"] for lease in shown] == ["Kestrel", "Tern", "Kestrel"]
    assert all(lease["queues_since"] for lease in shown)
    assert [lease["id"] for lease in items(operator, f"ops/leases?tenant={tern.tenant.pk}")] == asked[1:2]


def test_a_lease_tells_whose_it_is_and_nothing_of_what_runs_on_it(desk: Desk, operator: Client) -> None:
    lease = desk.life.lease(desk.owner, offering(), command="secret-command", env={"KEY": "hidden"})
    desk.life.run(60)
    told = read(operator, f"ops/leases/{lease.pk}")
    assert (told["tenant"]["id"], told["state"], told["queues_since"]) == (
        desk.owner.tenant.pk,
        "active",
        None,
    )
    assert "secret-command" not in str(told)
    assert "hidden" not in str(told)
    steps = items(operator, f"ops/leases/{lease.pk}/transitions")
    assert [step["after"] for step in steps] == ["requested", "queued", "provisioning", "active"]
    assert (steps[0]["actor"]["kind"], steps[0]["actor"]["label"]) == ("user", desk.owner.actor.label)
    (place,) = items(operator, f"ops/allocations?lease={lease.pk}&held=true")
    assert (place["lease"]["id"], place["tenant"]["name"], place["size"]) == (lease.pk, "Kestrel", 1)
    desk.life.release(lease)
    desk.life.run(60)
    assert items(operator, f"ops/allocations?gpu={place['gpu']}&held=true") == []
    assert [p["id"] for p in items(operator, f"ops/allocations?gpu={place['gpu']}")] == [place["id"]]


def test_a_card_is_told_from_its_first_unit_to_its_last(desk: Desk, operator: Client) -> None:
    lease = desk.life.lease(desk.owner, offering("3g.40gb"))
    desk.life.run(60)
    (card,) = items(operator, "ops/gpus?show=sold")
    assert sum(part["size"] for part in card["parts"]) == card["units"]
    (held,) = [part["held"] for part in card["parts"] if part["held"]]
    assert (held["lease"], held["tenant_name"]) == (lease.pk, "Kestrel")
    assert held["per_hour"] == {"amount": "3.000000000", "currency": "EUR"}
    assert read(operator, f"ops/gpus/{card['id']}") == card
    assert len(items(operator, "ops/gpus")) == Gpu.objects.count()
    assert items(operator, "ops/gpus?show=out") == []
    read(operator, "ops/gpus?show=mine", status=400)


def test_offerings_tell_their_price_what_is_free_and_who_has_them(desk: Desk, operator: Client) -> None:
    what = offering("3g.40gb")
    desk.life.lease(desk.owner, what)
    Offering.objects.filter(pk=offering("1g.10gb").pk).update(state="draft")
    told = read(operator, f"ops/offerings/{what.pk}")
    assert (told["live_leases"], told["price_next"]) == (1, None)
    assert told["price_now"]["per_hour"]["amount"] == f"{3 * EURO // EURO}.000000000"
    assert told["free_now"] > 0
    (draft,) = items(operator, "ops/offerings?state=draft")
    assert (draft["id"], draft["free_now"]) == (offering("1g.10gb").pk, None)
    (price,) = items(operator, f"ops/price-versions?offering={draft['id']}&currency=EUR")
    assert price["created_by"] == ""


def test_proofs_are_checked_and_payments_listed(desk: Desk, operator: Client) -> None:
    proofs = items(operator, "ops/proofs")
    assert {"no oversell", "charged is active"} <= {proof["name"] for proof in proofs if proof["holds"]}
    assert items(operator, "ops/payments?status=stuck") == []


def test_every_collection_asks_as_often_with_many_rows_as_with_few(desk: Desk, operator: Client) -> None:
    paths = (
        "ops/leases",
        "ops/allocations",
        "ops/gpus",
        "ops/offerings",
        "ops/price-versions",
        "ops/payments",
    )
    counts: list[dict[str, int]] = []
    for more in (1, 8):
        for number in range(more):
            desk.life.lease(home(f"T{more}-{number}"), offering())
        desk.life.run(60)
        counts.append({})
        for path in paths:
            read(operator, path)
            with CaptureQueriesContext(connection) as seen:
                read(operator, f"{path}?limit=500")
            counts[-1][path] = len(seen)
    assert counts[0] == counts[1]


def test_each_look_is_in_the_trail_by_its_own_name(desk: Desk, operator: Client) -> None:
    for path in ("ops/leases", "ops/allocations", "ops/gpus", "ops/proofs"):
        read(operator, path)
    with as_staff():
        seen = AuditEvent.objects.filter(action__startswith="ops.").order_by("at", "id")
        assert [event.action for event in seen] == [
            "ops.leases",
            "ops.allocations",
            "ops.cards",
            "ops.proofs",
        ]


def test_a_tenant_finds_its_leases_by_who_asked_on_what_terms_and_below_a_project(desk: Desk) -> None:
    child = desk.owner.child("below")
    grandchild = desk.owner.child("deeper", child)
    deep = desk.life.lease(desk.owner, offering(), project=grandchild)
    spot = desk.life.lease(desk.owner, offering(price_class="spot"))
    other = desk.signed_in_as(Role.MEMBER)
    theirs = desk.life.lease(other.owner, offering())

    def found(query: str, client: Client = desk.client) -> set[str]:
        return {lease["id"] for lease in items(client, f"leases?{query}")}

    assert found(f"below={child.pk}") == {deep.pk}
    assert found(f"below={desk.owner.project.pk}") == {deep.pk, spot.pk, theirs.pk}
    assert found("price_class=spot") == {spot.pk}
    assert found("requested_by=me") == {deep.pk, spot.pk}
    assert found("requested_by=me", other.client) == {theirs.pk}
    assert found(f"requested_by={other.user.pk}") == {theirs.pk}
    assert found("q=1g.10gb") >= {deep.pk}
    assert desk.get("/api/v1/leases?requested_by=%00").status_code == 400
    assert desk.get("/api/v1/leases?price_class=odd").status_code == 400


def test_offerings_are_found_by_memory_and_by_what_is_free(desk: Desk) -> None:
    def found(query: str) -> set[str]:
        return {each["id"] for each in items(desk.client, f"offerings?limit=500&{query}")}

    assert found("memory_gb__gte=80") == {o.pk for o in Offering.objects.filter(memory_gb__gte=80)}
    assert offering("card").pk in found("free_now=true")
    for _ in range(8):
        desk.life.lease(desk.owner, offering("card"))
    assert found("free_now=true") == set()
    for wrong in ("memory_gb__gte=much", "memory_gb__gte=9999999999", "free_now=maybe"):
        read(desk.client, f"offerings?{wrong}", status=400)


def test_usage_is_told_of_one_price_class(desk: Desk) -> None:
    spot, dear = offering(price_class="spot"), offering()
    for what in (spot, dear):
        desk.life.lease(desk.owner, what)
    desk.life.run(3600)
    told = read(desk.client, "usage?price_class=spot")
    assert {day["key"] for day in told["items"]} == {spot.pk}
    assert float(told["total"]["amount"]) < float(read(desk.client, "usage")["total"]["amount"]) / 2
    read(desk.client, "usage?price_class=odd", status=400)
    read(desk.client, "usage?price_class=spot&group_by=project", status=400)


def put(client: Client, path: str, **body: Any) -> Any:
    return client.put(f"/api/v1/{path}", body, content_type="application/json")


def test_a_price_is_published_from_a_moment_on_and_again_is_the_same(desk: Desk, operator: Client) -> None:
    what = offering("card")
    path = f"ops/offerings/{what.pk}/price"
    first = put(operator, path, per_hour="3.10", since="2026-12-01T00:00:00+01:00")
    assert first.status_code == 200, first.content
    told = first.json()
    assert told["per_hour"] == {"amount": "3.100000000", "currency": "EUR"}
    assert (told["since"], told["until"], told["created_by"]) == (
        "2026-11-30T23:00:00Z",
        None,
        "operator@example.org",
    )
    again = put(operator, path, per_hour="3.1", since="2026-11-30T23:00:00Z")
    assert again.json() == told
    assert len(items(operator, f"ops/price-versions?offering={what.pk}")) == 2
    assert put(operator, path, per_hour="3.20", since="2026-11-30T23:00:00Z").json()["code"] == "price-fixed"
    at_once = put(operator, path, per_hour="4")
    assert at_once.json()["since"] == "2026-11-21T09:00:00Z"
    with as_staff():
        assert AuditEvent.objects.filter(action="price.publish").count() == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"per_hour": "three"},
        {"per_hour": "-1"},
        {"per_hour": "1", "currency": "XXX"},
        {"per_hour": "1", "since": "soon"},
        {"per_hour": "1", "colour": "red"},
    ],
)
def test_a_price_that_cannot_be_meant_is_a_problem(
    desk: Desk, operator: Client, body: dict[str, str]
) -> None:
    answer = put(operator, f"ops/offerings/{offering('card').pk}/price", **body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert put(operator, "ops/offerings/off_x/price", per_hour="1").status_code == 404


def test_a_price_is_tried_on_last_month(desk: Desk, operator: Client) -> None:
    what = offering("card")
    ran(desk.owner.project, what, desk.life.now - timedelta(days=25), 3600)
    rating.rate(now=desk.life.now)
    told = read(operator, f"ops/offerings/{what.pk}/preview?per_hour=14")
    assert (told["was"]["amount"], told["would_be"]["amount"]) == ("7.000000", "14.000000")
    assert (told["since"], told["until"]) == ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z")
    [one] = told["items"]
    assert (one["tenant"], one["leases"], one["unit_seconds"]) == (desk.owner.tenant.pk, 1, 3600)
    assert read(operator, f"ops/offerings/{what.pk}/preview")["would_be"] == told["was"]
    for odd in ("?per_hour=x", "?per_hour=1&currency=XXX", "?per_hour=1&colour=red"):
        read(operator, f"ops/offerings/{what.pk}/preview{odd}", status=400)


def test_use_without_a_price_is_listed(desk: Desk, operator: Client) -> None:
    assert items(operator, "ops/price-gaps") == []
    lease = runs(desk.owner.project, offering("card"), desk.life.now - timedelta(days=91))
    [gap] = items(operator, "ops/price-gaps")
    assert (gap["tenant"], gap["lease"], gap["unit_seconds"]) == (desk.owner.tenant.pk, lease.pk, 24 * 3600)
