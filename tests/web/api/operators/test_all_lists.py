"""Operators' lists of all tenants over the API."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, Offering
from tenants.domain.roles import Role
from tenants.models import AuditEvent, User
from tenants.services.rls import staff_scope
from tests.billing.histories import add_ended_lease, add_running_lease
from tests.simulation import create_tenant, offering
from tests.web.keyed_requests import patch_json, post_keyed
from tests.web.portal.signed_in_user import EURO, PortalSession, open_portal

pytestmark = pytest.mark.django_db


@pytest.fixture
def portal(settings: Any) -> Iterator[PortalSession]:
    settings.OPERATORS_REQUIRE_MFA = False
    with open_portal() as made:
        yield made


@pytest.fixture
def operator(portal: PortalSession) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("operator@example.org", is_staff=True))
    return client


def read(client: Client, path: str, *, status: int = 200) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == status, answer.content
    return answer.json()


def items(client: Client, path: str) -> list[Any]:
    return list(read(client, path)["items"])


def test_the_queue_of_all_tenants_is_paginated_oldest_first(portal: PortalSession, operator: Client) -> None:
    tern = create_tenant("Tern")
    portal.sim.create_lease(portal.owner, offering())  # so that no node is free for all of its GPUs
    requests = []
    for owner in (portal.owner, tern, portal.owner):
        requests.append(
            portal.sim.create_lease(owner, offering("whole-gpu"), LeaseState.QUEUED, quantity=8, same_node=True).pk
        )
        portal.sim.run(60)
    first = read(operator, "ops/leases?state=queued&sort=queued_since&limit=2")
    rest = read(operator, f"ops/leases?state=queued&sort=queued_since&limit=2&cursor={first['next_cursor']}")
    shown = first["items"] + rest["items"]
    assert [lease["id"] for lease in shown] == requests
    assert [lease["tenant"]["name"] for lease in shown] == ["Kestrel", "Tern", "Kestrel"]
    assert all(lease["queued_since"] for lease in shown)
    assert [lease["id"] for lease in items(operator, f"ops/leases?tenant={tern.tenant.pk}")] == requests[1:2]


def test_operators_see_the_tenant_of_a_lease_but_not_its_workload(portal: PortalSession, operator: Client) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), command="secret-command", env={"KEY": "hidden"})
    portal.sim.run(60)
    body = read(operator, f"ops/leases/{lease.pk}")
    assert (body["tenant"]["id"], body["state"], body["queued_since"]) == (
        portal.owner.tenant.pk,
        "active",
        None,
    )
    assert "secret-command" not in str(body)
    assert "hidden" not in str(body)
    steps = items(operator, f"ops/leases/{lease.pk}/transitions")
    assert [step["after"] for step in steps] == ["requested", "queued", "provisioning", "active"]
    assert (steps[0]["actor"]["kind"], steps[0]["actor"]["label"]) == ("user", portal.owner.actor.label)
    (place,) = items(operator, f"ops/allocations?lease={lease.pk}&held=true")
    assert (place["lease"]["id"], place["tenant"]["name"], place["size"]) == (lease.pk, "Kestrel", 1)
    portal.sim.release_lease(lease)
    portal.sim.run(60)
    assert items(operator, f"ops/allocations?gpu={place['gpu']}&held=true") == []
    assert [p["id"] for p in items(operator, f"ops/allocations?gpu={place['gpu']}")] == [place["id"]]


def test_a_gpu_lists_all_its_units_with_the_leases_on_them(portal: PortalSession, operator: Client) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("3g.40gb"))
    portal.sim.run(60)
    (gpu,) = items(operator, "ops/gpus?show=sold")
    assert sum(part["size"] for part in gpu["sections"]) == gpu["memory_slices"]
    (held,) = [part["held_by"] for part in gpu["sections"] if part["held_by"]]
    assert (held["lease"], held["tenant_name"]) == (lease.pk, "Kestrel")
    assert held["price_per_hour"] == {"amount": "3.000000000", "currency": "EUR"}
    assert read(operator, f"ops/gpus/{gpu['id']}") == gpu
    assert len(items(operator, "ops/gpus")) == Gpu.objects.count()
    assert items(operator, "ops/gpus?show=out") == []
    read(operator, "ops/gpus?show=mine", status=400)


def test_offerings_show_price_free_count_and_live_lease_count(portal: PortalSession, operator: Client) -> None:
    what = offering("3g.40gb")
    portal.sim.create_lease(portal.owner, what)
    Offering.objects.filter(pk=offering("1g.10gb").pk).update(state="draft")
    body = read(operator, f"ops/offerings/{what.pk}")
    assert (body["live_lease_count"], body["price_next"]) == (1, None)
    assert body["price_now"]["price_per_hour"]["amount"] == f"{3 * EURO // EURO}.000000000"
    assert body["free_now"] > 0
    (draft,) = items(operator, "ops/offerings?state=draft")
    assert (draft["id"], draft["free_now"]) == (offering("1g.10gb").pk, None)
    (price,) = items(operator, f"ops/price-versions?offering={draft['id']}&currency=EUR")
    assert price["created_by_label"] == ""


def test_operators_set_the_cpu_memory_and_scratch_of_an_offering(portal: PortalSession, operator: Client) -> None:
    what = offering("1g.10gb")
    body = {"cpu_milli": 1000, "host_memory_mib": 8192, "scratch_mib": 10_240}
    shown = change(operator, f"ops/offerings/{what.pk}", resources=body).json()
    assert {name: shown[name] for name in body} == body
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    assert (lease.cpu_milli, lease.host_memory_mib, lease.scratch_mib) == (1000, 8192, 10_240)
    refused = change(operator, f"ops/offerings/{what.pk}", resources={**body, "cpu_milli": 1501})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "cpu_milli")
    assert change(operator, f"ops/offerings/{what.pk}", resources={"cpu_milli": 1000}).status_code == 400


def test_integrity_checks_are_checked_and_payments_listed(portal: PortalSession, operator: Client) -> None:
    proofs = items(operator, "ops/integrity-checks")
    assert {"no oversell", "charges match usage"} <= {proof["name"] for proof in proofs if proof["holds"]}
    assert items(operator, "ops/payments?status=stuck") == []


@pytest.mark.deep
def test_the_number_of_queries_is_the_same_with_many_rows(portal: PortalSession, operator: Client) -> None:
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
            portal.sim.create_lease(create_tenant(f"T{more}-{number}"), offering())
        portal.sim.run(60)
        counts.append({})
        for path in paths:
            read(operator, path)
            with CaptureQueriesContext(connection) as seen:
                read(operator, f"{path}?limit=500")
            counts[-1][path] = len(seen)
    assert counts[0] == counts[1]


def test_each_read_is_audited_under_its_own_action(portal: PortalSession, operator: Client) -> None:
    for path in ("ops/leases", "ops/allocations", "ops/gpus", "ops/integrity-checks"):
        read(operator, path)
    with staff_scope():
        seen = AuditEvent.objects.filter(action__startswith="ops.").order_by("at", "id")
        assert [event.action for event in seen] == [
            "ops.leases",
            "ops.allocations",
            "ops.gpus",
            "ops.integrity_checks",
        ]


def test_leases_are_filtered_by_requester_price_class_and_parent_project(portal: PortalSession) -> None:
    child = portal.owner.create_project("below")
    grandchild = portal.owner.create_project("deeper", child)
    deep = portal.sim.create_lease(portal.owner, offering(), project=grandchild)
    spot = portal.sim.create_lease(portal.owner, offering(price_class="spot"))
    other = portal.sign_in_as(Role.MEMBER)
    theirs = portal.sim.create_lease(other.owner, offering())

    def found(query: str, client: Client = portal.client) -> set[str]:
        return {lease["id"] for lease in items(client, f"leases?{query}")}

    assert found(f"below={child.pk}") == {deep.pk}
    assert found(f"below={portal.owner.project.pk}") == {deep.pk, spot.pk, theirs.pk}
    assert found("price_class=spot") == {spot.pk}
    assert found("requested_by=me") == {deep.pk, spot.pk}
    assert found("requested_by=me", other.client) == {theirs.pk}
    assert found(f"requested_by={other.user.pk}") == {theirs.pk}
    assert found("q=1g.10gb") >= {deep.pk}
    assert portal.get("/api/v1/leases?requested_by=%00").status_code == 400
    assert portal.get("/api/v1/leases?price_class=odd").status_code == 400


@pytest.mark.deep
def test_offerings_are_filtered_by_memory_and_availability(portal: PortalSession) -> None:
    def found(query: str) -> set[str]:
        return {each["id"] for each in items(portal.client, f"offerings?limit=500&{query}")}

    assert found("memory_gb__gte=80") == {o.pk for o in Offering.objects.filter(memory_gb__gte=80)}
    assert offering("whole-gpu").pk in found("free_now=true")
    for _ in range(8):
        portal.sim.create_lease(portal.owner, offering("whole-gpu"))
    assert found("free_now=true") == set()
    for wrong in ("memory_gb__gte=much", "memory_gb__gte=9999999999", "free_now=maybe"):
        read(portal.client, f"offerings?{wrong}", status=400)


def test_usage_is_filtered_by_price_class(portal: PortalSession) -> None:
    spot, dear = offering(price_class="spot"), offering()
    for what in (spot, dear):
        portal.sim.create_lease(portal.owner, what)
    portal.sim.run(3600)
    body = read(portal.client, "usage?price_class=spot")
    assert {day["key"] for day in body["items"]} == {spot.pk}
    assert float(body["total"]["amount"]) < float(read(portal.client, "usage")["total"]["amount"]) / 2
    read(portal.client, "usage?price_class=odd", status=400)
    read(portal.client, "usage?price_class=spot&group_by=project", status=400)


def post(client: Client, path: str, **body: Any) -> Any:
    return post_keyed(client, f"/api/v1/{path}", body)


def change(client: Client, path: str, **body: Any) -> Any:
    return patch_json(client, f"/api/v1/{path}", body)


def test_publishing_a_price_with_a_start_time_is_idempotent_and_audited(
    portal: PortalSession, operator: Client
) -> None:
    what = offering("whole-gpu")
    path = f"ops/offerings/{what.pk}/price"
    first = post(operator, path, price_per_hour="3.10", since="2026-12-01T00:00:00+01:00")
    assert first.status_code == 201, first.content
    body = first.json()
    assert body["price_per_hour"] == {"amount": "3.100000000", "currency": "EUR"}
    assert (body["since"], body["until"], body["created_by_label"]) == (
        "2026-11-30T23:00:00Z",
        None,
        "operator@example.org",
    )
    again = post(operator, path, price_per_hour="3.1", since="2026-11-30T23:00:00Z")
    assert again.json() == body
    assert len(items(operator, f"ops/price-versions?offering={what.pk}")) == 2
    assert post(operator, path, price_per_hour="3.20", since="2026-11-30T23:00:00Z").json()["code"] == "price-fixed"
    at_once = post(operator, path, price_per_hour="4")
    assert at_once.json()["since"] == "2026-11-21T09:00:00Z"
    with staff_scope():
        assert AuditEvent.objects.filter(action="price.publish").count() == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"price_per_hour": "three"},
        {"price_per_hour": "-1"},
        {"price_per_hour": "1", "currency": "XXX"},
        {"price_per_hour": "1", "since": "soon"},
        {"price_per_hour": "1", "colour": "red"},
    ],
)
def test_an_invalid_price_is_refused(portal: PortalSession, operator: Client, body: dict[str, str]) -> None:
    answer = post(operator, f"ops/offerings/{offering('whole-gpu').pk}/price", **body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert post(operator, "ops/offerings/off_x/price", price_per_hour="1").status_code == 404


def test_a_price_is_previewed_on_last_months_usage(portal: PortalSession, operator: Client) -> None:
    what = offering("whole-gpu")
    add_ended_lease(portal.owner.project, what, portal.sim.now - timedelta(days=25), 3600)
    lease_rating.rate_all_leases(now=portal.sim.now)
    body = read(operator, f"ops/offerings/{what.pk}/preview?price_per_hour=14")
    assert (body["was"]["amount"], body["would_be"]["amount"]) == ("7.000000", "14.000000")
    assert (body["since"], body["until"]) == ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z")
    [one] = body["items"]
    assert (one["tenant"], one["lease_count"], one["unit_seconds"]) == (portal.owner.tenant.pk, 1, 3600)
    assert read(operator, f"ops/offerings/{what.pk}/preview")["would_be"] == body["was"]
    for odd in ("?price_per_hour=x", "?price_per_hour=1&currency=XXX", "?price_per_hour=1&colour=red"):
        read(operator, f"ops/offerings/{what.pk}/preview{odd}", status=400)


def test_usage_without_a_price_is_listed(portal: PortalSession, operator: Client) -> None:
    assert items(operator, "ops/price-gaps") == []
    lease = add_running_lease(portal.owner.project, offering("whole-gpu"), portal.sim.now - timedelta(days=91))
    [gap] = items(operator, "ops/price-gaps")
    assert (gap["tenant"], gap["lease"], gap["unit_seconds"]) == (portal.owner.tenant.pk, lease.pk, 24 * 3600)


def test_operators_set_the_terms_of_a_spot_offering(portal: PortalSession, operator: Client) -> None:
    what = offering("1g.10gb", price_class="spot")
    shown = change(operator, f"ops/offerings/{what.pk}", spot_terms={"notice_s": 60, "min_runtime_s": None}).json()
    assert (shown["spot_notice_s"], shown["spot_min_runtime_s"]) == (60, None)
    again = change(operator, f"ops/offerings/{what.pk}", spot_terms={"notice_s": 60, "min_runtime_s": None})
    assert again.status_code == 200
    other = offering("1g.10gb")
    refused = change(operator, f"ops/offerings/{other.pk}", spot_terms={"notice_s": 60, "min_runtime_s": 0})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "notice_s")
