"""Imports of the domain packages: no Django, clock or randomness."""

import subprocess
import sys
from pathlib import Path

import billing
import broker

DOMAINS = [Path(floor.__file__).parent / "domain" for floor in (broker, billing)]
FORBIDDEN = {
    "django",
    "rest_framework",
    "celery",
    "kubernetes",
    "stripe",
    "psycopg",
    "ports",
    "random",
    "time",
}


def test_domain_modules_load_without_frameworks_or_ports() -> None:
    names = [
        ".".join((d.parent.name, "domain", *path.relative_to(d).with_suffix("").parts))
        for d in DOMAINS
        for path in d.rglob("[a-z]*.py")
    ]
    assert len(names) > 15
    # "time" and "random" are loaded by the standard library itself, so they are looked for in our own files.
    program = f"import sys, {', '.join(names)}; print(*({FORBIDDEN!r} - {{'random', 'time'}}) & set(sys.modules))"
    root = DOMAINS[0].parent.parent
    result = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert result.stdout.split() == []


def test_no_domain_file_imports_clock_or_randomness() -> None:
    for path in (path for domain in DOMAINS for path in domain.rglob("*.py")):
        lines = path.read_text().splitlines()
        imports = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
        assert not imports & FORBIDDEN, path
        assert not [line for line in lines if ".now(" in line or ".today(" in line], path
