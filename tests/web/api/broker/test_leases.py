"""Leases over the API."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Cluster, Lease, Offering
from broker.services.leases.lease_connections import lease_connections_of
from broker.services.leases.lifecycle import termination
from tenants.domain.roles import Role
from tenants.models import Member, QuotaKind
from tenants.services import tokens
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, OPERATOR, Simulation, TenantContext, offering, reload_lease
from tests.web.api.broker.conftest import Api


def wanted(owner: TenantContext, **other: Any) -> dict[str, Any]:
    return {
        "name": "fold-run-7",
        "project": owner.project.pk,
        "offering": offering().pk,
        "max_duration_s": 3600,
        **other,
    }


def count(owner: TenantContext) -> int:
    with tenant_scope(owner.tenant.pk):
        return Lease.objects.count()


def test_a_lease_request_returns_202_with_the_location_of_the_lease(api: Api, kestrel: TenantContext) -> None:
    answer = api.post("leases", wanted(kestrel, tags={"team": "nlp"}))
    assert answer.status_code == 202
    assert answer["Location"] == f"/api/v1/leases/{answer.body['id']}"
    assert answer.body["spec"]["tags"] == {"team": "nlp"}
    assert answer.body["status"]["state"] == "queued"
    again = api.get(f"leases/{answer.body['id']}")
    assert again.status_code == 200
    assert again["ETag"] == answer["ETag"]


def test_a_lease_shows_its_spec_requester_and_status(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    values = {
        "project": kestrel.project.pk,
        "offering": offering("whole-gpu").pk,
        "quantity": 2,
        "max_duration_s": 7200,
        "image": "ghcr.io/kestrel/fold:7",
        "command": "python fold.py",
    }
    made = api.post("leases", {"name": "fold", "end_date": "2026-11-21T14:00:00Z", **values}).body
    assert {name: made["spec"][name] for name in values} == values
    assert made["spec"]["end_date"] == "2026-11-21T14:00:00Z"
    path = f"leases/{made['id']}"
    with tenant_scope(kestrel.tenant.pk):
        lease = Lease.objects.get()
        Lease.objects.update(conditions={"Slow": "A fan."}, progress={"text": "Pulls", "percent": 40})
    status = api.get(path).body["status"]
    assert status["conditions"] == [{"type": "Slow", "status": True, "message": "A fan."}]
    assert status["progress"] == {"text": "Pulls", "percent_done": 40}
    assert made["requested_by"] == {"id": lease.requested_by, "label": lease.requested_by_label}
    assert lease.requested_by
    sim.run(12)
    api.post(f"{path}/release")
    sim.run(5)
    over, lease = api.get(path).body, reload_lease(lease)
    assert lease.ended_at
    assert datetime.fromisoformat(over["ended_at"]) == lease.ended_at
    assert (over["status"]["generation"], over["version"]) == (lease.generation, lease.version)
    assert min(lease.generation, lease.version) > 0


def test_a_lease_can_be_followed_from_launch_to_release(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    path = f"leases/{api.post('leases', wanted(kestrel)).body['id']}"
    sim.run(12)
    active = api.get(path).body
    assert active["status"]["state"] == "active"
    assert active["ends_at"] > active["active_at"]
    places = api.get(f"{path}/allocations").body["items"]
    assert [(p["cluster"], p["node"], p["profile"]) for p in places] == [("north-1", "n01", "1g.10gb")]
    assert places[0]["placement"]["size"] == 1
    assert api.post(f"{path}/release").status_code == 202
    sim.run(5)
    over = api.get(path).body
    assert (over["status"]["state"], over["status"]["end_reason"]) == ("released", "by_tenant")
    steps = api.get(f"{path}/transitions").body["items"]
    assert [s["after"] for s in steps] == [
        "requested",
        "queued",
        "provisioning",
        "active",
        "releasing",
        "released",
    ]
    assert steps[0]["actor"]["label"].startswith("machine")


def test_a_request_repeated_under_its_key_creates_one_lease(api: Api, kestrel: TenantContext) -> None:
    first = api.post("leases", wanted(kestrel), Idempotency_Key="one")
    second = api.post("leases", wanted(kestrel), Idempotency_Key="one")
    assert second["Idempotency-Replayed"] == "true"
    assert (second.status_code, second.body) == (first.status_code, first.body)
    assert second["Location"] == first["Location"]
    assert count(kestrel) == 1


def test_an_idempotency_key_with_another_body_is_refused(api: Api, kestrel: TenantContext) -> None:
    api.post("leases", wanted(kestrel), Idempotency_Key="one")
    other = api.post("leases", wanted(kestrel, quantity=2), Idempotency_Key="one")
    assert (other.status_code, other.body["code"]) == (422, "idempotency-key-reuse")
    assert count(kestrel) == 1


def test_a_launch_without_an_idempotency_key_is_refused(api: Api, kestrel: TenantContext) -> None:
    answer = api.post("leases", wanted(kestrel), Idempotency_Key="")
    assert (answer.status_code, answer.body["code"]) == (400, "idempotency-key-missing")
    assert count(kestrel) == 0


def test_a_dry_run_returns_the_expected_state_and_creates_no_lease(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    answer = api.post("leases?dry_run=true", wanted(kestrel))
    assert (answer.status_code, answer["Dry-Run"]) == (200, "true")
    assert answer.body["status"]["state"] == "provisioning"
    sim.create_lease(kestrel, offering("whole-gpu"), quantity=2)
    answer = api.post("leases?dry_run=true", wanted(kestrel))
    assert answer.body["status"]["state"] == "queued"
    assert answer.body["status"]["pending_reason"].startswith("Waits for one free H100 SXM 80GB 1g.10gb.")
    assert count(kestrel) == 1
    assert kestrel.quota_used() == 14_000


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "x" * 1000}, "name"),
    ({"name": ""}, "name"),
    ({"name": None}, "name"),
    ({"name": 7}, "name"),
    ({"name": "a\u0007b"}, "name"),
    ({"name": "a\u202eb"}, "name"),
    ({"quantity": 0}, "quantity"),
    ({"quantity": 10**15}, "quantity"),
    ({"quantity": 600}, "quantity"),
    ({"quantity": "many"}, "quantity"),
    ({"quantity": 1.5}, "quantity"),
    ({"max_duration_s": 1}, "max_duration_s"),
    ({"max_duration_s": 10**9}, "max_duration_s"),
    ({"end_date": "yesterday"}, "end_date"),
    ({"end_date": "2026-13-45T00:00:00Z"}, "end_date"),
    ({"end_date": (NOW - timedelta(days=1)).isoformat()}, "end_date"),
    ({"image": "a\u0000b"}, ""),
    ({"image": "x" * 301}, "image"),
    ({"command": "a\u001bb"}, "command"),
    ({"command": 5}, "command"),
    ({"image": "http://registry.example/a"}, "image"),
    ({"workload": "root"}, "workload"),
    ({"workload": "ssh"}, "ssh_keys"),
    ({"ssh_keys": "ssh-ed25519 AAAA"}, "ssh_keys"),
    ({"ssh_keys": ["ssh-rsa x"] * 21}, "ssh_keys"),
    ({"env": ["A"]}, "env"),
    ({"env": {"LD_PRELOAD": "/tmp/x.so"}}, "env"),
    ({"env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "env"),
    ({"env": {f"V{n}": "" for n in range(1000)}}, "env"),
    ({"env": {"A": "a\ud800b"}}, ""),
    ({"env": {"A\u0000": "b"}}, ""),
    ({"env": {"A": None}}, "env"),
    ({"tags": ["a"]}, "tags"),
    ({"tags": {"": "a"}}, "tags"),
    ({"tags": {f"t{n}": "a" for n in range(21)}}, "tags"),
    ({"tenant_id": "ten_other"}, "tenant_id"),
    ({"state": "active"}, "state"),
    ({"price": 0}, "price"),
]


def test_a_lease_shows_its_workload_without_values_of_variables(api: Api, kestrel: TenantContext) -> None:
    requested = wanted(kestrel, workload="jupyter", env={"TOKEN": "hush", "MODE": "train"})
    answer = api.post("leases", requested)
    assert answer.status_code == 202
    spec = answer.body["spec"]
    assert (spec["workload"], spec["env_names"], spec["ssh_keys"]) == ("jupyter", ["MODE", "TOKEN"], [])
    assert "hush" not in str(answer.body)


@pytest.mark.parametrize(("other", "field"), BAD, ids=[f"{next(iter(o))}-{n}" for n, (o, _) in enumerate(BAD)])
def test_an_invalid_lease_request_names_its_field_and_a_fix(
    api: Api, kestrel: TenantContext, other: dict[str, Any], field: str
) -> None:
    answer = api.post("leases", wanted(kestrel, **other))
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.body["fix"]["text"]
    if field:
        assert answer.body["errors"][0]["field"].split(".")[0] == field
    assert count(kestrel) == 0


def test_a_quota_refusal_names_the_limit_and_links_to_usage(api: Api, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.UNITS, 7_000)
    answer = api.post("leases", wanted(kestrel, quantity=8))
    assert (answer.status_code, answer.body["code"]) == (409, "quota-exceeded")
    assert answer.body["quota"]["limit"] == 7_000
    assert answer.body["fix"]["href"] == "/api/v1/quota-usage"
    assert kestrel.quota_used() == 0


def test_an_impossible_quantity_is_refused_with_the_largest_possible_one(api: Api, kestrel: TenantContext) -> None:
    answer = api.post("leases", wanted(kestrel, offering=offering("whole-gpu").pk, quantity=3, same_node=True))
    assert (answer.status_code, answer.body["code"], answer.body["most"]) == (422, "placement-impossible", 2)


def test_an_unknown_and_a_retired_offering_are_refused(api: Api, kestrel: TenantContext) -> None:
    assert api.post("leases", wanted(kestrel, offering="off_none")).status_code == 404
    Offering.objects.filter(profile="1g.10gb").update(state="retired")
    answer = api.post("leases", wanted(kestrel))
    assert (answer.status_code, answer.body["code"]) == (409, "offering-retired")


def test_a_project_of_another_tenant_gets_the_same_404_as_an_unknown_one(
    other_tenant_api: Api, kestrel: TenantContext
) -> None:
    foreign = other_tenant_api.post("leases", wanted(kestrel))
    missing = other_tenant_api.post("leases", wanted(kestrel, project="prj_none"))
    assert foreign.status_code == missing.status_code == 404
    assert foreign.body["detail"] == missing.body["detail"]


def test_a_lease_of_another_tenant_gets_the_same_404_as_an_unknown_one(
    other_tenant_api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    lease = sim.create_lease(kestrel, offering())
    for ask in (
        lambda pk: other_tenant_api.get(f"leases/{pk}"),
        lambda pk: other_tenant_api.get(f"leases/{pk}/transitions"),
        lambda pk: other_tenant_api.get(f"leases/{pk}/allocations"),
        lambda pk: other_tenant_api.delete(f"leases/{pk}"),
        lambda pk: other_tenant_api.post(f"leases/{pk}/release"),
        lambda pk: other_tenant_api.post(f"leases/{pk}/extend", {"more_s": 600}),
        lambda pk: other_tenant_api.patch(f"leases/{pk}", {"name": "mine"}, If_Match="*"),
    ):
        assert [ask(pk).status_code for pk in (lease.pk, "lse_none", "x" * 100)] == [404, 404, 404]
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_repeated_delete_succeeds_and_a_late_release_is_refused(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    lease = sim.create_lease(kestrel, offering())
    assert [api.delete(f"leases/{lease.pk}").status_code for _ in range(2)] == [202, 202]
    sim.run(5)
    assert api.delete(f"leases/{lease.pk}").status_code == 200
    late = api.post(f"leases/{lease.pk}/release")
    assert (late.status_code, late.body["code"]) == (409, "already-over")


def test_changing_name_and_tags_requires_the_current_etag(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    path = f"leases/{sim.create_lease(kestrel, offering()).pk}"
    read = api.get(path)
    assert api.patch(path, {"name": "new"}).status_code == 428
    done = api.patch(path, {"name": "new", "tags": {"team": "nlp"}}, If_Match=read["ETag"])
    assert (done.status_code, done.body["name"], done.body["spec"]["tags"]) == (200, "new", {"team": "nlp"})
    stale = api.patch(path, {"name": "newer"}, If_Match=read["ETag"])
    assert (stale.status_code, stale.body["code"]) == (412, "precondition-failed")
    same = api.patch(path, {"name": "new"}, If_Match=done["ETag"])
    assert same["ETag"] == done["ETag"]
    assert api.patch(path, {"quantity": 2}, If_Match="*").status_code == 400


def test_a_release_sent_again_after_the_end_gets_its_first_answer(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    lease = sim.create_lease(kestrel, offering())
    path = f"leases/{lease.pk}/release"
    first = api.post(path, Idempotency_Key="one")
    sim.run_with_sweeps(60)
    again = api.post(path, Idempotency_Key="one")
    assert reload_lease(lease).state == "released"
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.body == first.body
    assert api.post(path, Idempotency_Key="another").status_code == 409


def test_extending_moves_the_end(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    lease = sim.create_lease(kestrel, offering())
    before = reload_lease(lease).ends_at
    answer = api.post(f"leases/{lease.pk}/extend", {"more_s": 600})
    assert answer.status_code == 200
    assert before
    assert reload_lease(lease).ends_at == before + timedelta(seconds=600)
    assert api.post(f"leases/{lease.pk}/extend", {"more_s": 10**9}).status_code == 400
    assert api.post(f"leases/{lease.pk}/extend", {}).status_code == 400


def test_leases_are_filtered_sorted_searched_and_paginated(api: Api, kestrel: TenantContext, sim: Simulation) -> None:
    team = kestrel.create_project("team")
    for n in range(5):
        sim.request_lease(kestrel, offering(), name=f"alpha-{n}", tags={"team": "nlp"} if n % 2 else {})
        sim.run(0.001)
    other = sim.request_lease(kestrel, offering("whole-gpu"), name="beta", project=team)

    def names(query: str) -> list[str]:
        return [item["name"] for item in api.get(f"leases?{query}").body["items"]]

    assert names("sort=name&limit=2") == ["alpha-0", "alpha-1"]
    assert names("q=bet") == ["beta"]
    assert names(f"project={team.pk}") == ["beta"]
    assert names(f"offering={offering('whole-gpu').pk}") == ["beta"]
    assert names("tag.team=nlp&sort=name") == ["alpha-1", "alpha-3"]
    assert names("state=active") == []
    assert len(names("state=queued,provisioning")) == 6
    assert names(f"created_at__gte={reload_lease(other).created_at.isoformat()}".replace("+", "%2B")) == ["beta"]
    assert names("created_at__lte=2020-01-01T00:00:00Z") == []
    seen, cursor = [], ""
    while cursor is not None:
        page = api.get(f"leases?limit=4&cursor={cursor}" if cursor else "leases?limit=4").body
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.parametrize(
    "query",
    [
        "state=sleeping",
        "limit=0",
        "limit=501",
        "sort=price",
        "tenant=x",
        "created_at__gte=now",
        "cursor=x",
        "tag.=x",
    ],
)
def test_an_invalid_leases_query_is_refused_with_a_fix(api: Api, query: str) -> None:
    answer = api.get(f"leases?{query}")
    assert answer.status_code == 400
    assert answer.body["fix"]["text"]


def test_viewers_and_read_only_tokens_cannot_change_leases(kestrel: TenantContext, sim: Simulation) -> None:
    viewer = Api(kestrel.token(Role.VIEWER))
    lease = sim.create_lease(kestrel, offering())
    assert viewer.get(f"leases/{lease.pk}").status_code == 200
    assert viewer.post("leases", wanted(kestrel)).status_code == 403
    assert viewer.delete(f"leases/{lease.pk}").status_code == 403
    assert viewer.post(f"leases/{lease.pk}/extend", {"more_s": 600}).status_code == 403
    reader = Api(kestrel.token(Role.OWNER, scopes=("leases:read",)))
    assert reader.post("leases", wanted(kestrel)).status_code == 403


def test_a_project_member_can_only_read_other_projects(kestrel: TenantContext, sim: Simulation) -> None:
    team = kestrel.create_project("team")
    user = kestrel.create_member(Role.VIEWER)
    with tenant_scope(kestrel.tenant.pk):
        Member.objects.create(tenant=kestrel.tenant, user=user, role=Role.MEMBER, project=team, created_at=sim.now)
        _, text = tokens.issue(
            tenant=kestrel.tenant,
            name="both",
            scopes=["tenant:admin"],
            expires_at=sim.now + timedelta(days=1),
            actor=kestrel.actor,
            now=sim.now,
            user_id=user.pk,
        )
    both = Api(text)
    kept = both.post("volumes", {"name": "data", "project": team.pk, "size_gib": 20})
    assert kept.status_code == 201
    own = sim.create_lease(kestrel, offering(), project=team)
    lease = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel, name="held").pk)
    path = f"leases/{lease.pk}"
    assert both.get(path).status_code == 200
    refused = [
        both.patch(path, {"name": "mine"}, If_Match="*"),
        both.post(f"{path}/extend", {"more_s": 600}),
        both.get(f"{path}/connections"),
        both.post(f"{path}/stop"),
        both.post(f"{path}/start"),
        both.post(f"{path}/release"),
        both.delete(path),
        both.delete(f"volumes/{sim.create_volume(kestrel, name='free').pk}", If_Match="*"),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert both.post(f"leases/{own.pk}/release").status_code == 202


def test_a_tenant_sees_an_operators_action_without_the_operators_name(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    lease = sim.create_lease(kestrel, offering())
    with tenant_scope(lease.tenant_id):
        termination.release_lease(reload_lease(lease), reason=EndReason.BY_OPERATOR, now=sim.now, actor=OPERATOR)
    answer = api.get(f"leases/{lease.pk}/transitions")
    assert answer.body["items"][-1]["actor"] == {"kind": "operator", "label": "an operator"}
    assert OPERATOR.label not in answer.content.decode()
    assert [each["id"] for each in api.get("leases?end_reason=by_operator").body["items"]] == [lease.pk]
    assert api.get("leases?end_reason=by_tenant").body["items"] == []


def test_transitions_of_a_lease_are_paginated(
    api: Api, kestrel: TenantContext, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.api.leases.TRANSITIONS_PER_PAGE", 3)
    path = f"leases/{sim.create_lease(kestrel, offering()).pk}/transitions"
    first = api.get(path).body
    assert [step["after"] for step in first["items"]] == ["requested", "queued", "provisioning"]
    assert first["total_estimate"] == 4
    second = api.get(f"{path}?cursor={first['next_cursor']}").body
    assert ([step["after"] for step in second["items"]], second["next_cursor"]) == (["active"], None)
    monkeypatch.setattr("web.api.leases.TRANSITIONS_PER_PAGE", 4)
    assert api.get(path).body["next_cursor"] is None
    for odd in ("x", "-1", "\N{SUPERSCRIPT TWO}", "9" * 10):
        assert api.get(f"{path}?cursor={odd}").status_code == 400


def test_expired_altered_and_missing_tokens_are_refused(kestrel: TenantContext, sim: Simulation) -> None:
    token = kestrel.token()
    assert Api(token[:-1] + "x").get("leases").status_code == 401
    sim.clock.at = NOW + timedelta(days=31)
    assert Api(token).get("leases").status_code == 401
    assert Client().get("/api/v1/leases").status_code == 401


def test_malformed_and_huge_bodies_are_refused_before_anything_happens(api: Api, kestrel: TenantContext) -> None:
    assert api.post("leases", b"{not json").status_code == 400
    assert api.post("leases", b"[]").status_code == 400
    assert api.post("leases", b'{"a": NaN}').status_code == 400
    huge = api.post("leases", b'{"name": "' + b"x" * 10_000_000 + b'"}')
    assert (huge.status_code, huge.body["code"]) == (413, "body-too-large")
    assert count(kestrel) == 0


def test_the_api_lists_the_connections_of_the_page_while_a_lease_runs(
    api: Api, other_tenant_api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    Cluster.objects.update(domain="leases.example", ingress="ingress/public")
    lease = sim.create_lease(kestrel, offering(), workload="jupyter")
    (way,) = api.get(f"leases/{lease.pk}/connections").body["items"]
    with tenant_scope(lease.tenant_id):
        (shown,) = lease_connections_of(reload_lease(lease))
    known = {name: value for name, value in asdict(shown).items() if name != "sign_in_form"}  # of pages only
    known["text"] = known.pop("line")
    assert way == known
    assert way["text"].endswith(".leases.example/")
    assert other_tenant_api.get(f"leases/{lease.pk}/connections").status_code == 404
    sim.release_lease(lease)
    assert api.get(f"leases/{lease.pk}/connections").body["items"] == []


def test_a_lease_shows_the_resources_of_each_slice_as_they_were_requested(
    api: Api, kestrel: TenantContext, sim: Simulation
) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"))
    Offering.objects.update(cpu_milli=100)
    spec = api.get(f"leases/{lease.pk}").body["spec"]
    assert (spec["cpu_milli"], spec["host_memory_mib"], spec["scratch_mib"]) == (1500, 12_288, 25_600)
