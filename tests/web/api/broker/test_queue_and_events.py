"""The queue and the list of events over the API."""

import re
from typing import Any

import pytest

from tenants.domain.roles import Role
from tests.database import OwnDatabase
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    offering,
    simulate,
    wait_until_events_settled,
)
from tests.web.api.broker.conftest import Api


def test_a_queue_entry_has_its_position_among_all_tenants_and_a_reason(
    api: Api, other_tenant_api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    swift = create_tenant("Third")
    sim.create_lease(kestrel, offering("whole-gpu"), quantity=2)
    sim.request_lease(swift, offering("whole-gpu"))
    sim.run(1)
    mine = sim.request_lease(kestrel, offering("whole-gpu"), name="patient")
    sim.run(1)
    page = api.get("queue-entries").body
    assert [(e["lease"], e["queue_position"], e["queue_length"]) for e in page["items"]] == [(mine.pk, 2, 2)]
    assert page["items"][0]["pending_reason"].startswith("Waits for one free H100 SXM 80GB whole GPU.")
    assert api.get(f"leases/{mine.pk}").body["status"]["queue_position"] == 2
    assert other_tenant_api.get("queue-entries").body["items"] == []


def test_an_empty_queue_is_an_empty_list(api: Api) -> None:
    assert api.get("queue-entries").body == {"items": [], "next_cursor": None, "total_estimate": 0}


def test_event_stream_requests_are_redirected_to_the_stream_server(api: Api, settings: Any) -> None:
    answer = api.get("events?cursor=1-2", Accept="text/event-stream")
    assert answer.status_code == 307
    assert answer["Location"] == f"{settings.EVENTS_URL}/api/v1/events/stream?cursor=1-2"
    assert api.get("events", Accept="text/event-stream")["Location"].endswith("/api/v1/events/stream")


@pytest.mark.parametrize(
    "query",
    ["cursor=x", "cursor=1-", "cursor=812-3", "cursor=1-99999999999999999999", "limit=0", "limit=501", "limit=x"],
)
def test_an_invalid_cursor_or_limit_is_refused(api: Api, query: str) -> None:
    assert api.get(f"events?{query}").status_code == 400


def test_events_are_paginated_in_order_and_limited_to_the_tenant(own_database: OwnDatabase) -> None:
    with simulate() as sim:
        create_gpus(2)
        kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
        team = kestrel.create_project("team")
        lease = sim.create_lease(kestrel, offering(), name="mine")
        sim.create_lease(swift, offering(), name="theirs")
        sim.request_lease(kestrel, offering(), project=team, name="teamwork")
        api = Api(kestrel.token())
        wait_until_events_settled()
        seen, cursor = [], ""
        in_vain = 0
        while in_vain < 10 and len(seen) < 100:  # others on this server may hold one look back, never many
            page = api.get(f"events?limit=2&cursor={cursor}").body
            in_vain = 0 if page["items"] else in_vain + 1
            seen += page["items"]
            cursor = page["next_cursor"]
        assert [event["type"] for event in seen if event["lease"] == lease.pk] == [
            "lease.requested",
            "lease.queued",
            "lease.provisioning",
            "lease.active",
        ]
        assert {event["name"] for event in seen} == {"mine", "teamwork"}
        others = Api(swift.token()).get("events").body["items"]
        assert all(re.fullmatch("evt_[a-z2-7]{26}", event["id"]) for event in seen + others)
        assert api.get(f"events?cursor={others[0]['id']}").status_code == 400, "another tenant's id says nothing here"
        assert api.get("events?cursor=0-0").body["items"][0]["id"] == seen[0]["id"]
        assert (seen[0]["before"], seen[0]["end_reason"], seen[0]["seq"]) == (None, None, 0)
        assert api.get(f"events?cursor={cursor}").body == {"items": [], "next_cursor": cursor}
        assert Api(kestrel.token(Role.VIEWER, scopes=("quotas:read",))).get("events").status_code == 403
