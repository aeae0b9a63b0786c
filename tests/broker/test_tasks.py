"""Tasks are thin, and every hint that is rung has somebody who answers."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from celery import current_app

from broker import tasks
from broker.models import Cluster, MovePlan
from broker.services.moving import deciding
from ports import doorbell
from tests.broker.services.movers import NOTICE_S, apart
from tests.world import OPERATOR, Life, cards, fresh, home, offering

ROOT = Path(__file__).resolve().parents[2]
APPS = ("ports", "tenants", "broker", "billing", "config")


def trees() -> list[tuple[Path, ast.Module]]:
    files = [file for app in APPS for file in (ROOT / app).rglob("*.py") if "migrations" not in file.parts]
    return [(file, ast.parse(file.read_text())) for file in files]


def rung() -> set[str]:
    """Return the literal names that any code rings for, hands to a worker or returns at the head of a hint."""
    names = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            first: list[ast.expr] = []
            if isinstance(node, ast.Tuple):
                first = node.elts[:1]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in RINGS
            ):
                first = node.args[:1]
            names |= {
                each.value
                for each in first
                if isinstance(each, ast.Constant)
                and isinstance(each.value, str)
                and NAME.fullmatch(each.value)
            }
    return names


RINGS = {"ring", "ring_for_each", "send"}
NAME = re.compile(r"(?:tenants|broker|billing)\.[a-z_]+")
HANDED_ON = {"broker.step", "broker.serve", "broker.move", "broker.recut", "broker.volume"}  # as tuples


def test_every_name_that_is_rung_is_a_registered_task() -> None:
    current_app.loader.import_default_modules()
    assert rung() >= HANDED_ON
    assert rung() <= set(current_app.tasks)


def test_every_name_of_the_beat_is_a_registered_task(settings: Any) -> None:
    current_app.loader.import_default_modules()
    assert {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()} <= set(current_app.tasks)


def test_a_task_has_at_most_ten_lines() -> None:
    for file, tree in trees():
        if file.name == "tasks.py":
            for node in tree.body:
                if isinstance(node, ast.FunctionDef):
                    assert node.end_lineno
                    assert node.end_lineno - node.lineno + 1 <= 10, f"{file}: {node.name}"


@pytest.mark.usefixtures("db")
def test_the_settings_that_keep_a_killed_worker_from_losing_tasks(settings: Any) -> None:
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    assert settings.CELERY_TASK_ACKS_LATE
    assert settings.CELERY_TASK_REJECT_ON_WORKER_LOST
    assert settings.CELERY_WORKER_PREFETCH_MULTIPLIER == 1
    assert options["visibility_timeout"] > settings.CELERY_TASK_TIME_LIMIT
    assert options["unacked_restore_throttle"] == 1
    assert options["unacked_restore_interval"] <= 5
    assert options["socket_timeout"] > 0


def test_tasks_do_what_their_hints_say(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    cards(1)
    kestrel = home()
    lease, other = life.ask(kestrel, offering("card")), life.ask(kestrel, offering("card"))
    life.hints.clear()
    sent: list[tuple[str, str, str]] = []
    monkeypatch.setattr(doorbell, "send", lambda *hint: sent.append(hint))
    tasks.sweep()
    assert sent == [("broker.serve", "H100-80GB|eu-north", "")]
    tasks.serve("H100-80GB|eu-north")
    assert fresh(lease).state == "provisioning"
    tasks.recut("lch_nobody")  # nothing to do is no reason to complain
    tasks.step(lease.pk, lease.tenant_id)
    assert fresh(lease).progress["text"] == "pulling image"
    sent.clear()
    tasks.sweep_all()
    assert sent == [
        ("broker.step", lease.pk, kestrel.tenant.pk),
        ("broker.serve", "H100-80GB|eu-north", ""),
    ]
    assert fresh(other).state == "queued"


def test_a_plan_of_moves_is_made_and_carried_out_by_its_hints(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(2)
    apart(life, home("Kestrel"), home("Merlin"), movable=True)
    tasks.plan_moves(Cluster.objects.get().pk)
    plan = MovePlan.objects.get(state="proposed")
    deciding.accept(plan, why="room", actor=OPERATOR, now=life.now)
    life.hints.clear()  # they are lost
    life.run(NOTICE_S)
    sent: list[tuple[str, str, str]] = []
    monkeypatch.setattr(doorbell, "send", lambda *hint: sent.append(hint))
    tasks.sweep()
    assert ("broker.move", plan.pk, "") in sent
    tasks.move(plan.pk)
    plan.refresh_from_db()
    assert plan.state == "running"
    tasks.move("mpl_nobody")  # nothing to do is no reason to complain
