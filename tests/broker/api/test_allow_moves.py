"""A lease says over the API whether it may be moved."""

from typing import Any

from tests.broker.api.conftest import Api
from tests.broker.api.test_leases import wanted
from tests.world import Home


def change(api: Api, lease: dict[str, Any], **wanted: Any) -> Any:
    return api.patch(f"leases/{lease['id']}", wanted, If_Match="*")


def test_a_lease_stays_on_its_card_unless_it_is_asked_for_otherwise(api: Api, kestrel: Home) -> None:
    assert api.post("leases", wanted(kestrel)).body["spec"]["movable"] is False
    assert api.post("leases", wanted(kestrel, movable=True)).body["spec"]["movable"] is True


def test_it_is_said_and_taken_back_later(api: Api, kestrel: Home) -> None:
    lease = api.post("leases", wanted(kestrel)).body
    said = change(api, lease, movable=True, name="may-move")
    assert (said.body["spec"]["movable"], said.body["name"]) == (True, "may-move")
    again = change(api, said.body, movable=True)
    assert again.body["version"] == said.body["version"]
    back = change(api, said.body, movable=False)
    assert back.body["spec"]["movable"] is False


def test_one_that_is_over_goes_nowhere(api: Api, kestrel: Home) -> None:
    lease = api.post("leases", wanted(kestrel)).body
    over = api.delete(f"leases/{lease['id']}").body
    assert change(api, over, movable=True).status_code == 409
