"""Random runs with planted bugs."""

import inspect
import textwrap
from types import ModuleType
from typing import Any

import pytest

from broker.models import leases, transitions
from broker.services.clusters import orphan_removal
from broker.services.leases.lifecycle import termination
from broker.services.queue import lease_placement
from broker.services.reconciler import lease_reconciler
from tests.database import OwnDatabase
from tests.sim.driver import live_and_rest, simulated
from tests.sim.faults import Faults

SEEDS, STEPS = range(1, 6), 150
# Every fault often: what is looked for here is known to need some of them.
WILD = dict.fromkeys(Faults.KINDS, 0.06) | {"interleave": 0.35}

# What is changed, where, from what, to what.
PLANTED: dict[str, tuple[Any, ModuleType, str, str, str]] = {
    "capacity is sold again before the pod is gone": (
        termination, termination, "release_once", "if held:", "if False:"
    ),
    "what was made for a lease that moved on keeps running": (
        lease_reconciler, lease_reconciler, "_act_and_apply", "if outdated:", "if False:"
    ),
    "quota is never given back": (
        termination, termination, "finish_release", "quotas.return_quota(lease, used",
        "(lambda *_, **__: None)(lease, used"
    ),
    "places are never given back": (
        termination,
        termination,
        "finish_release",
        "left.update(released_at=max(now, lease.state_since))",
        "left.count()",
    ),
    "a lease moves whoever was faster": (
        leases,
        transitions,
        "write_transition",
        "TRANSITION_SQL.format(",
        'TRANSITION_SQL.replace("state = %s AND seq = %s AND max_duration_s = %s", "(%s, %s, %s) IS NOT NULL").format(',
    ),
    "lost hints are never repeated": (
        lease_reconciler,
        lease_reconciler,
        "_lease_message",
        'return "broker.reconcile_lease", lease_id, tenant_id',
        'return "broker.run_queue", "none|none", ""',
    ),
    "orphans are left running": (
        orphan_removal, orphan_removal, "_remove_from", "provisioner.remove_named(orphan.name, now=now)", "pass"
    ),
    "a placement of an older generation is taken for the new one": (
        lease_placement, lease_placement, "_reserve_slots", "lease.generation + 1", "lease.generation"
    ),
}  # fmt: skip


@pytest.fixture
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    owner, module, name, right, wrong = PLANTED[request.param]
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    assert source.count(right) == 1, f"{name} has changed: plant the bug anew"
    scope: dict[str, Any] = {}
    exec(compile(source.replace(right, wrong), f"planted in {name}", "exec"), vars(module), scope)
    monkeypatch.setattr(owner, name, scope[name])
    name_of_bug: str = request.param
    return name_of_bug


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planted", PLANTED, indirect=True)
def test_a_planted_bug_is_found(planted: str, own_database: OwnDatabase) -> None:
    for seed in SEEDS:
        with simulated(seed) as sim:
            sim.faults.rate = WILD
            try:
                live_and_rest(sim, steps=STEPS)
            except Exception:  # whatever it is: the bug has shown itself
                return
    pytest.fail(f"nobody noticed that {planted}")


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.deep
def test_without_a_planted_bug_the_same_runs_find_nothing(own_database: OwnDatabase, seed: int) -> None:
    with simulated(seed) as sim:
        sim.faults.rate = WILD
        live_and_rest(sim, steps=STEPS)
