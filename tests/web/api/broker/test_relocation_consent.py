"""Relocation consent of a lease over the API."""

from typing import Any

import pytest

from tests.broker.services.relocation.scattered_leases import NOTICE_S, accept_plan, relocations_of, scatter_leases
from tests.simulation import Simulation, TenantContext, soft_offering
from tests.web.api.broker.conftest import Api
from tests.web.api.broker.test_leases import wanted


def change(api: Api, lease: dict[str, Any], **wanted: Any) -> Any:
    return api.patch(f"leases/{lease['id']}", wanted, If_Match="*")


def test_a_lease_is_not_relocatable_by_default(api: Api, kestrel: TenantContext) -> None:
    assert api.post("leases", wanted(kestrel)).body["spec"]["relocatable"] is False
    assert api.post("leases", wanted(kestrel, relocatable=True)).body["spec"]["relocatable"] is True


def test_relocation_is_allowed_and_disallowed_again(api: Api, kestrel: TenantContext) -> None:
    lease = api.post("leases", wanted(kestrel)).body
    said = change(api, lease, relocatable=True, name="may-move")
    assert (said.body["spec"]["relocatable"], said.body["name"]) == (True, "may-move")
    again = change(api, said.body, relocatable=True)
    assert again.body["version"] == said.body["version"]
    back = change(api, said.body, relocatable=False)
    assert back.body["spec"]["relocatable"] is False


def test_an_ended_lease_cannot_allow_relocation(api: Api, kestrel: TenantContext) -> None:
    lease = api.post("leases", wanted(kestrel)).body
    over = api.delete(f"leases/{lease['id']}").body
    assert change(api, over, relocatable=True).status_code == 409


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"quantity": 2}, "Not available for quantity > 1."),
        ({"offering": "quarter"}, "Not available for shared GPUs."),
    ],
)
def test_consent_is_refused_for_leases_that_cannot_be_relocated(
    api: Api, kestrel: TenantContext, values: dict[str, Any], why: str
) -> None:
    if "offering" in values:
        values = {"offering": soft_offering().pk}
    for where in ("leases", "quotes"):
        refused = api.post(where, wanted(kestrel, relocatable=True, **values))
        assert (refused.status_code, refused.body["detail"]) == (400, why)
        assert refused.body["errors"][0]["field"] == "relocatable"
    lease = api.post("leases", wanted(kestrel, **values)).body
    answer = change(api, lease, relocatable=True, name="not-so")
    assert (answer.status_code, answer.body["detail"]) == (400, why)
    after = api.get(f"leases/{lease['id']}").body
    assert (after["spec"]["relocatable"], after["name"]) == (False, lease["name"])
    assert change(api, lease, relocatable=False).status_code == 200


@pytest.mark.parametrize("said", [None, "perhaps", 2, [], {}, "x" * 1000, "a\u0007b"])
def test_a_consent_that_is_not_boolean_is_refused(api: Api, kestrel: TenantContext, said: Any) -> None:
    assert api.post("leases", wanted(kestrel, relocatable=said)).status_code == 400
    lease = api.post("leases", wanted(kestrel, relocatable=True)).body
    answer = change(api, lease, relocatable=said, name="not-so")
    assert (answer.status_code, answer.body["errors"][0]["field"]) == (400, "relocatable")
    assert answer.body["fix"]["text"]
    after = api.get(f"leases/{lease['id']}").body
    assert (after["spec"]["relocatable"], after["name"], after["version"]) == (
        True,
        lease["name"],
        lease["version"],
    )


def test_a_change_of_the_consent_requires_the_current_etag(api: Api, kestrel: TenantContext) -> None:
    lease = api.post("leases", wanted(kestrel)).body
    path = f"leases/{lease['id']}"
    read = api.get(path)
    assert api.patch(path, {"relocatable": True}).status_code == 428
    assert api.patch(path, {"relocatable": True}, If_Match=read["ETag"]).status_code == 200
    stale = api.patch(path, {"relocatable": False}, If_Match=read["ETag"])
    assert (stale.status_code, stale.body["code"]) == (412, "precondition-failed")
    assert api.get(path).body["spec"]["relocatable"] is True


@pytest.mark.deep
def test_a_scheduled_relocation_is_shown_with_the_lease_and_in_lists(
    api: Api, sim: Simulation, kestrel: TenantContext
) -> None:
    both = scatter_leases(sim, kestrel, kestrel, relocatable=True)
    assert {api.get(f"leases/{each.pk}").body["status"]["relocation"] for each in both} == {None}
    (move,) = relocations_of(accept_plan(sim))
    (stays,) = {each.pk for each in both} - {move.lease_id}

    def shown_move() -> dict[str, str] | None:
        listed = {each["id"]: each["status"]["relocation"] for each in api.get("leases?state=active").body["items"]}
        alone = api.get(f"leases/{move.lease_id}").body["status"]["relocation"]
        assert listed.get(move.lease_id, alone) == alone
        assert listed[stays] is None
        return alone

    assert move.not_before
    assert shown_move() == {"state": "noticed", "not_before": move.not_before.isoformat().replace("+00:00", "Z")}
    places = api.get(f"leases/{move.lease_id}/allocations").body["items"]
    assert [place["is_relocation"] for place in places] == [False]
    sim.run_with_sweeps(NOTICE_S)
    ahead = shown_move()
    assert ahead
    assert ahead["state"] == "moving"
    places = api.get(f"leases/{move.lease_id}/allocations").body["items"]
    assert sorted(place["is_relocation"] for place in places) == [False, True]
    sim.run_with_sweeps(60)
    assert shown_move() is None
