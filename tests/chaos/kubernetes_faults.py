"""Faults of the long chaos run, with their frequency."""

import time
from collections.abc import Callable

from tests.chaos import kubernetes_disasters as disasters
from tests.chaos import kubernetes_keeping as keeping
from tests.chaos.kubernetes_world import OFFERS, World
from tests.controlplane.api import PATCHES, Object, Refused
from tests.controlplane.mig_manager import CONFIG, STATE
from tests.controlplane.plane import API, ETCD

Step = Callable[[World], None]
IMAGE = "registry.example/acts:"
SCRIPTS = ("hang-0s", "hang-0s", "hang-0s", "hang-1s", "pull-1s", "oom-3s", "never-pulls")
JSON = "application/json"
HOLDS = "stranger.example/holds"  # a finalizer
STALLS_S = (3.0, 30.0)  # a watch is given up in between
# A long pause is kept by all that work on the cluster: often asked for, nothing would live but pauses.
PAUSES_S, HOW_OFTEN = ("0", "1", "30"), (48, 48, 4)


def asks(world: World) -> None:
    if len(world.leases(*keeping.AT_WORK)) >= keeping.LONGEST:  # then somebody ends one
        ends(world)
        return
    profile = world.chance.choice(("1g.10gb", "1g.10gb", "1g.10gb", "whole-gpu"))
    script, lasts = world.chance.choice(SCRIPTS), world.chance.choice((20, 60, 3600, 6 * 3600))
    world.ask(IMAGE + script, profile, max_duration_s=lasts)


def asks_for_a_batch(world: World) -> None:
    script = world.chance.choice(("succeed-2s", "fail-1s"))
    world.ask(IMAGE + script, "1g.10gb", max_duration_s=60, workload="batch", command="python x.py")


def ends(world: World) -> None:
    if there := world.leases("queued", "provisioning", "active", "stopping"):
        world.people.release_lease(world.chance.choice(there))


def passes(world: World) -> None:
    """Do nothing."""


def conflict(world: World) -> None:
    what = world.chance.choice(("POST", "PATCH", "DELETE"))
    world.proxy.fails(f"{what} .*", 409, body={"reason": "Conflict", "message": "somebody was faster"})


def busy(world: World) -> None:
    status = world.chance.choice((429, 503))
    (pause,) = world.chance.choices(PAUSES_S, HOW_OFTEN)
    world.proxy.fails(".*", status, headers={"Retry-After": pause})


def over_quota(world: World) -> None:
    words = 'pods "x" is forbidden: exceeded quota: gpub-hard'
    world.proxy.fails("POST .*/(statefulsets|configmaps)", 403, body={"reason": "Forbidden", "message": words})


def invalid(world: World) -> None:
    world.proxy.fails("POST .*/statefulsets", 422, body={"reason": "Invalid", "message": "spec: Invalid"})


def denied(world: World) -> None:
    world.proxy.fails(".*", world.chance.choice((401, 403)), times=3, body={"message": "no"})


def hangs_up(world: World) -> None:
    world.proxy.fails(".*", times=world.chance.randint(1, 4))


def loses_an_answer(world: World) -> None:
    world.proxy.fails("(POST|PATCH|DELETE) .*", after=True)


def is_empty_by_mistake(world: World) -> None:
    def nothing() -> Object:
        version = world.plane.api.get("/api/v1/nodes", limit=1)["metadata"]["resourceVersion"]  # else: a backup
        return {"kind": "List", "metadata": {"resourceVersion": version}, "items": []}

    world.proxy.fails("GET /api/v1/(pods|configmaps|nodes)\\?limit", line=nothing)


def forgets(world: World) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    world.proxy.fails("GET .*watch=true", line=gone)


def stalls(world: World) -> None:
    """Watches stay open without events; other requests are answered."""
    world.proxy.silent_until = time.monotonic() + world.chance.choice(STALLS_S)


def worker_dies(world: World) -> None:
    world.fuse.calls, world.fuse.after = world.chance.randint(1, 12), world.chance.random() < 0.5


def agent_dies(world: World) -> None:
    """Kill the agent at once, or around one of its writes."""
    if world.chance.random() < 0.3:
        world.agents_killed += 1
        world.kill_agent()
    else:
        world.pen.calls, world.pen.after = world.chance.randint(1, 6), world.chance.random() < 0.5


def node_loses_power(world: World) -> None:
    name = world.chance.choice(world.names[1:])  # a neighbour lives
    world.falls_silent(name)
    world.nodes.power(name, on=False)


def nodes_have_power(world: World) -> None:
    for name in world.names:
        world.nodes.power(name, on=True)
        world.speaks(name)


def plugin_reports_fewer(world: World) -> None:
    """A node reports fewer GPUs; the others stay in use."""
    name = world.chance.choice(world.names)
    if offers := _offers(world, name):
        lost = world.chance.choice(sorted(offers))
        world.nodes.give(name, **{lost: offers[lost] // 2})


def plugin_reports_all(world: World) -> None:
    for name in world.names:
        if offers := _offers(world, name):
            world.nodes.give(name, **offers)


def _offers(world: World, name: str) -> dict[str, int]:
    """Return the GPUs that a node's device plugin reports."""
    labels = world.nodes.see(name)["metadata"]["labels"]
    if labels.get(STATE, "success") != "success":
        return {}
    return OFFERS.get(labels.get(CONFIG, ""), next(iter(OFFERS.values())))


def somebody_deletes(world: World) -> None:
    """Delete one of our objects manually."""
    kind = world.chance.choice(("/api/v1/pods", "/api/v1/configmaps", "/apis/apps/v1/statefulsets", "/api/v1/services"))
    if found := _ours(world, kind):
        _try(world, "DELETE", kind, world.chance.choice(found))


def pod_is_evicted(world: World) -> None:
    if found := _ours(world, "/api/v1/pods"):
        pod = world.chance.choice(found)["metadata"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["name"]}}
        _say(world, "POST", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}/eviction", eviction)


def somebody_edits(world: World) -> None:
    """Change a lease's objects by hand."""
    edits: tuple[tuple[str, object], ...] = (
        ("/apis/apps/v1/statefulsets", {"spec": {"replicas": 0}}),
        ("/apis/apps/v1/statefulsets", {"metadata": {"annotations": {"example.org/note": "mine"}}}),
        (
            "/api/v1/configmaps",
            {"metadata": {"annotations": {"gpubroker.dev/paid-until": "2099-01-01T00:00:00Z"}}},
        ),
        ("/api/v1/services", {"spec": {"selector": {"app": "somebody-else"}}}),
    )
    kind, change = world.chance.choice(edits)
    if found := _ours(world, kind):
        _try(world, "PATCH", kind, world.chance.choice(found), change)


def somebody_holds_a_pod(world: World) -> None:
    """Add a foreign finalizer to one of our pods."""
    if found := _ours(world, "/api/v1/pods"):
        pod = world.chance.choice(found)
        _keep_by(world, pod, [*pod["metadata"].get("finalizers", []), HOLDS])


def nobody_holds(world: World) -> None:
    for pod in _ours(world, "/api/v1/pods"):
        kept = pod["metadata"].get("finalizers", [])
        if HOLDS in kept:
            _keep_by(world, pod, [each for each in kept if each != HOLDS])


def _keep_by(world: World, pod: Object, finalizers: list[str]) -> None:
    meta = {"finalizers": finalizers, "resourceVersion": pod["metadata"]["resourceVersion"]}
    _try(world, "PATCH", "/api/v1/pods", pod, {"metadata": meta})


def namespace_is_deleted(world: World) -> None:
    if found := world.plane.api.items("/api/v1/namespaces", labelSelector="gpubroker.dev/project"):
        _say(world, "DELETE", f"/api/v1/namespaces/{world.chance.choice(found)['metadata']['name']}")


def server_dies(world: World) -> None:
    world.falls_silent()
    world.plane.kill(API)
    world.out(3)
    world.plane.restart(API)
    world.speaks()


def memory_dies(world: World) -> None:
    """Stop etcd, so that requests to the API server fail."""
    world.falls_silent()
    world.plane.kill(ETCD)
    world.out(3)
    world.plane.mend()
    world.speaks()


def memory_hangs(world: World) -> None:
    """Pause etcd for a moment."""
    world.falls_silent()
    world.plane.pause(ETCD)
    world.out(2)
    world.plane.resume(ETCD)
    world.speaks()


def _ours(world: World, kind: str) -> list[Object]:
    return world.plane.api.items(kind, labelSelector="gpubroker.dev/lease")


def _try(world: World, method: str, kind: str, thing: Object, body: object = None) -> None:
    meta = thing["metadata"]
    root, _, plural = kind.rpartition("/")
    _say(world, method, f"{root}/namespaces/{meta['namespace']}/{plural}/{meta['name']}", body)


def _say(world: World, method: str, path: str, body: object = None) -> None:
    """Run a manual change that may fail because it was already made."""
    try:
        world.plane.api.say(method, path, body, kind=PATCHES["merge"] if method == "PATCH" else JSON)
    except Refused:
        return


# How often each is drawn, of about a thousand.
STEPS: dict[Step, float] = {
    passes: 360,
    asks: 80,
    asks_for_a_batch: 20,
    ends: 30,
    conflict: 40,
    busy: 30,
    over_quota: 15,
    invalid: 8,
    denied: 10,
    hangs_up: 30,
    loses_an_answer: 30,
    is_empty_by_mistake: 10,
    forgets: 15,
    stalls: 3,
    worker_dies: 40,
    agent_dies: 4,
    node_loses_power: 5,
    nodes_have_power: 10,
    plugin_reports_fewer: 3,
    plugin_reports_all: 12,
    somebody_deletes: 15,
    pod_is_evicted: 8,
    somebody_edits: 6,
    somebody_holds_a_pod: 4,
    nobody_holds: 8,
    namespace_is_deleted: 1,
    server_dies: 1.5,
    memory_dies: 1.5,
    memory_hangs: 1.5,
    disasters.seconds_pass: 25,
    disasters.minutes_pass: 4,
    disasters.hours_pass_in_silence: 1,
    disasters.is_backed_up: 3,
    disasters.is_restored: 1.5,
    disasters.node_is_cut_anew: 4,
    disasters.operator_looks: 4,
    disasters.neighbour_needs_the_place: 6,
    disasters.neighbours_leave: 16,
    disasters.ask_where_a_foreign_object_is: 3,
    keeping.asks_for_a_home: 100,
    keeping.stops: 60,
    keeping.starts: 60,
    keeping.releases_a_stopped: 5,
    keeping.deletes_a_volume: 12,
    keeping.is_lost_between_stop_and_start: 1.2,
}
