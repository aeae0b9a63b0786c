"""What stands is listed, and only what is not as we want it is written."""

from copy import deepcopy
from typing import Any

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.mending import Mender
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.standing import LOOKED_AT, Standing
from tests.broker.provisioners.kubernetes.wanted import EVERY_TEMPLATE, PLUGIN, PROJECT, of_kind
from tests.broker.provisioners.kubernetes.wire import Say, Serve, Wire, refused

LEASE = EVERY_TEMPLATE["jupyter"]
OBJECTS = lease_objects(LEASE, PLUGIN, anchor_uid="u-anchor")
(SERVICE,), (SECRET,) = of_kind(OBJECTS, "Service"), of_kind(OBJECTS, "Secret")
WALLS = project_objects(PROJECT, PLUGIN, entrances=("edge",))
(QUOTA,) = of_kind(WALLS, "ResourceQuota")


def as_listed(manifest: dict[str, Any], version: str = "7", **spec: Any) -> dict[str, Any]:
    """Return an object as a server's list has it: without its kind, and with what it adds by itself."""
    item = {name: value for name, value in deepcopy(manifest).items() if name not in ("apiVersion", "kind")}
    item["metadata"] |= {"uid": "u-1", "resourceVersion": version, "managedFields": [{"manager": "x"}]}
    item["spec"] = {"clusterIP": "10.0.0.7", **item.get("spec", {}), **spec}
    return {**item, "status": {"loadBalancer": {}}}


def page(*items: dict[str, Any], more: str = "") -> Say:
    return Say(body={"metadata": {"resourceVersion": "9", "continue": more}, "items": list(items)})


def looked(serve: Serve, **there: list[dict[str, Any]]) -> tuple[Standing, Wire]:
    """Look at a cluster that holds these, by kind."""
    order = [
        "Namespace",
        "Service",
        "ServiceAccount",
        "ResourceQuota",
        "LimitRange",
        "NetworkPolicy",
        "Ingress",
    ]
    wire = serve(*(page(*there.get(kind, ())) for kind in order), page())
    standing = Standing(wire.transport)
    standing.look()
    return standing, wire


def test_a_look_takes_one_list_of_ours_for_each_kind_but_secrets(serve: Serve) -> None:
    _, wire = looked(serve)
    paths = [each.path.split("?")[0].rsplit("/", 1)[1] for each in wire.asked]
    assert sorted(paths) == [
        "httproutes",
        "ingresses",
        "limitranges",
        "namespaces",
        "networkpolicies",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ]
    assert len(paths) == len(LOOKED_AT)
    assert all(
        f"labelSelector={labels.MANAGED_BY.replace('/', '%2F')}%3Dgpubroker" in each.path
        for each in wire.asked
    )


def test_what_is_as_we_want_it_needs_nothing_whatever_the_server_added(serve: Serve) -> None:
    standing, _ = looked(serve, Service=[as_listed(SERVICE)])
    assert not standing.needs(SERVICE)
    assert standing.needs(SECRET), "nobody can tell"


def test_what_somebody_changed_or_deleted_needs_us(serve: Serve) -> None:
    for there in ([as_listed(SERVICE, selector={"app": "theirs"})], []):
        standing, _ = looked(serve, Service=there)
        assert standing.needs(SERVICE)
    owned = as_listed(SERVICE)
    owned["metadata"]["ownerReferences"] = []
    standing, _ = looked(serve, Service=[owned])
    assert standing.needs(SERVICE)


def test_what_the_server_writes_otherwise_is_applied_once_until_it_changes(serve: Serve) -> None:
    """A quantity comes back as 1Ti for 1024Gi: applied each time, every project would be written to for ever."""
    normal = {**QUOTA["spec"]["hard"], "requests.memory": "1Ti"}
    standing, wire = looked(serve, ResourceQuota=[as_listed(QUOTA, hard=normal)])
    assert (standing.needs(QUOTA), standing.needs(QUOTA)) == (True, False)
    again = [page(), page(), page(), page(as_listed(QUOTA, hard=normal)), page(), page(), page(), page()]
    wire.script[:] = again
    standing.look()
    assert not standing.needs(QUOTA)
    standing.failed(QUOTA)
    assert standing.needs(QUOTA), "it was not done after all"
    wire.script[:] = [*again[:3], page(as_listed(QUOTA, "8", hard=normal)), *again[4:]]
    standing.look()
    assert standing.needs(QUOTA), "somebody wrote to it since"
    other = deepcopy(QUOTA)
    other["spec"]["hard"]["pods"] = "77"
    assert standing.needs(other), "we want something else by now"


def test_what_may_not_be_listed_is_applied_blindly_and_what_did_not_answer_is_left_for_next_time(
    serve: Serve, quick_time: None
) -> None:
    for answer, needs in (
        (refused(403, "no"), True),
        (refused(404, "no such kind"), True),
        (refused(400, "?"), False),
    ):
        standing = Standing(serve(answer).transport)
        standing.look()
        assert standing.needs(SERVICE) is needs


def test_thousands_come_page_by_page(serve: Serve) -> None:
    wire = serve(page(), page(as_listed(SERVICE, selector={}), more="next"), page(as_listed(SERVICE)), page())
    standing = Standing(wire.transport)
    standing.look()
    assert "continue=next" in wire.asked[2].path
    assert not standing.needs(SERVICE)


def test_between_rounds_nothing_is_kept(serve: Serve) -> None:
    standing, _ = looked(serve, Service=[as_listed(SERVICE)])
    standing.forget()
    assert not standing.needs(SERVICE), "nor is anything applied before it was looked at"
    assert standing._there == {}


def test_a_mender_looks_in_its_own_thread_and_is_not_idle_until_then(serve: Serve) -> None:
    wire = serve(page(as_listed(SERVICE)))
    mender = Mender(wire.transport)
    mender.look()
    assert not mender.is_idle
    turns = [True, False]
    mender.follow(lambda: turns.pop(0))
    assert mender.is_idle
    assert not mender.standing.needs(SERVICE)


def test_what_could_not_be_put_right_is_wanted_again(serve: Serve) -> None:
    changed = as_listed(SERVICE, selector={"app": "theirs"})
    wire = serve(page(changed))
    mender = Mender(wire.transport)
    mender.standing.look()
    assert mender.standing.needs(SERVICE)
    wire.script[:] = [refused(422, "immutable")]
    mender.take([SERVICE], every_s=0)
    mender.once()
    assert mender.standing.needs(SERVICE)
