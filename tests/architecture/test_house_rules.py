"""House rules of the code."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("config", "web", "billing", "broker", "tenants", "ports")
BANNED_NAMES = {"utils", "helpers", "common", "misc", "lib", "core", "handlers", "processors", "managers"}
OWN_MOMENT = {
    "broker/services/reports/invariant_checks.py": "each proof is dated at its own moment",
    "broker/services/clusters/agent/cluster_agent.py": (
        "an agent is no step but a whole process: it dates what it hears when it hears it"
    ),
    "broker/services/leases/abandoned_placements.py": (
        "a cluster may take seconds to answer: how long others may still be asked"
    ),
    "broker/services/reconciler/lease_reconciler.py": (
        "a cluster may take seconds to answer: what it says is dated when it says it"
    ),
}
# Whoever writes a lease's state writes its transition in the same statement.
LEDGER = {
    "broker/models/transitions.py": "every step of a life",
    "broker/sql/leases/insert_lease.sql": "the first two, at once",
    "broker/sql/queue/place_batch.sql": "the places of many leases, at once",
}
SERVICE_ROOMS = ("services", "domain")


def sources(*folders: str) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "migrations" not in path.parts and "__pycache__" not in path.parts
    ]


def trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sources(*folders):
        yield path, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a file once for all rules."""
    return ast.parse(path.read_text())


def test_the_import_contract_is_kept() -> None:
    found = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


def test_the_web_process_loads_no_cluster_and_no_science() -> None:
    code = (
        "import config.wsgi, sys;print([m for m in ('kubernetes', 'sklearn', 'ortools', 'stripe') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[]", found.stdout + found.stderr


def test_only_authentication_of_the_official_client_is_used() -> None:
    """The typed models of the client are 200 times slower than decoding."""
    found = [node for _, tree in trees(*FLOORS) for node in ast.walk(tree)]
    taken = {
        f"{node.module}.{name.name}" for node in found if isinstance(node, ast.ImportFrom) for name in node.names
    } | {name.name for node in found if isinstance(node, ast.Import) for name in node.names}
    assert {name for name in taken if name.startswith("kubernetes")} == {
        "kubernetes.client.ApiClient",
        "kubernetes.client.Configuration",
        "kubernetes.config.ConfigException",
        "kubernetes.config.load_kube_config_from_dict",
    }


def test_no_module_has_a_banned_generic_name() -> None:
    assert [p for p in sources(*FLOORS) if p.stem in BANNED_NAMES or p.parent.name in BANNED_NAMES] == []


def test_no_code_uses_django_signals() -> None:
    pattern = re.compile(r"@receiver\b|\.connect\(|django\.dispatch|post_save|pre_save")
    assert [p for p in sources("web", "billing", "broker", "tenants", "ports") if pattern.search(p.read_text())] == []


def test_init_files_contain_no_code() -> None:
    allowed = {"models", "config"}
    full = [p for p in sources(*FLOORS) if p.name == "__init__.py" and has_code(p)]
    assert [p for p in full if p.parent.name not in allowed] == []


def has_code(path: Path) -> bool:
    body = ast.parse(path.read_text()).body
    return any(not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)) for each in body)


def _catches_everything(node: ast.AST) -> bool:
    if not isinstance(node, ast.ExceptHandler):
        return False
    names = [n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)] if node.type else ["Exception"]
    return bool({"Exception", "BaseException"} & set(names))


def test_only_tasks_catch_all_exceptions() -> None:
    guilty = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees(*FLOORS)
        if path.name != "tasks.py"
        for node in ast.walk(tree)
        if _catches_everything(node) and not any(isinstance(n, ast.Raise) for n in ast.walk(node))
    ]
    assert guilty == []


def test_services_take_now_as_a_parameter() -> None:
    guilty = [
        str(path.relative_to(ROOT))
        for floor in ("web", "billing", "broker", "tenants")
        for room in SERVICE_ROOMS
        for path in sources(f"{floor}/{room}")
        if re.search(r"\bclock\.now\(\)|datetime\.now\(|timezone\.now\(", path.read_text())
    ]
    assert set(guilty) == set(OWN_MOMENT)


def _moves_a_lease(node: ast.AST) -> bool:
    """Return whether a call writes a lease's state without a transition."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    reported = {keyword.arg for keyword in node.keywords}
    if node.func.attr == "update" and reported & {"ended_at", "end_reason"}:  # no other row has these
        return True
    return ast.unparse(node.func).startswith(("Lease.objects", "Transition.objects")) and (
        node.func.attr in ("create", "bulk_create", "bulk_update")
        or (node.func.attr == "update" and bool(reported & {"state", "seq", "at", "ended_at", "end_reason"}))
    )


def test_lease_states_are_written_only_with_a_transition() -> None:
    written = re.compile(r"INSERT INTO broker_(transition|lease)\b|UPDATE broker_lease\b[^;]*?\bstate = ")
    statements = [each for folder in FLOORS for each in (ROOT / folder / "sql").rglob("*.sql")]
    found = [path for path in (*sources(*FLOORS), *statements) if written.search(path.read_text())]
    assert {str(path.relative_to(ROOT)) for path in found} == set(LEDGER)
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees(*FLOORS)
        for node in ast.walk(tree)
        if _moves_a_lease(node)
    ] == []


def test_the_domain_layer_imports_no_framework() -> None:
    for path, tree in trees("billing/domain", "broker/domain", "tenants/domain"):
        for node in ast.walk(tree):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [module] if module else [a.name for a in getattr(node, "names", []) if isinstance(node, ast.Import)]
            for name in names:
                assert name.split(".")[0] not in ("django", "rest_framework", "celery", "ports"), (path, name)


def test_files_stay_small() -> None:
    lengths = sorted(lines_of_code(p) for p in sources(*FLOORS) if p.name != "__init__.py")
    assert lengths[len(lengths) // 2] <= 66
    assert lengths[int(len(lengths) * 0.9)] <= 150


def lines_of_code(path: Path) -> int:
    """Count lines without blank lines, comments and docstrings."""
    text = path.read_text()
    described: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            described.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if line.strip() and line.strip()[0] != "#" and number not in described)


@pytest.mark.django_db
def test_every_api_view_names_existing_actions() -> None:
    from django.urls import URLResolver, get_resolver

    from tenants.domain.roles import ACTIONS

    def views(patterns: list[Any]) -> Iterator[tuple[Any, set[str]]]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from views(pattern.url_patterns)
            elif cls := getattr(pattern.callback, "cls", None):
                yield cls, set((getattr(pattern.callback, "actions", None) or {}).values())

    from web.http.authentication import TenantPermission

    for view, methods in views(get_resolver().url_patterns):
        if TenantPermission not in view.permission_classes:
            continue  # the fleet: for operators, and in the matrix
        needed = view.actions_needed
        assert methods <= set(needed), f"{view.__name__} does not say what {methods - set(needed)} need"
        assert set(needed.values()) <= ACTIONS, f"{view.__name__} needs what no role has"
