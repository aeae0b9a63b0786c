"""The first documents are complete, their links work, their commands exist."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "THREAT_MODEL.md", "LICENSE", "docs/architecture.md"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def tracked(pattern: str) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout.split()


def links(file: str) -> Iterator[Path]:
    """Yield the link targets of a document within the repository."""
    for link in LINK.findall(FENCED.sub("", (ROOT / file).read_text())):
        if "://" not in link and not link.startswith("#"):
            yield (ROOT / file).parent / link.partition("#")[0]


def test_the_first_documents_and_the_licence_exist() -> None:
    assert {name for name in FIRST if not (ROOT / name).read_text().strip()} == set()
    assert tracked("docs/decisions/*.md")
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:100]


@pytest.mark.parametrize("file", tracked("*.md"))
def test_every_link_target_exists(file: str) -> None:
    assert [str(place) for place in links(file) if not place.exists()] == []


def test_every_make_target_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = [(ROOT / file).read_text() for file in tracked("*.md") if file != "CHANGELOG.md"]  # tells old names
    typed = "\n".join(block for text in texts for block in FENCED.findall(text))
    named = set(re.findall(r"^make ([a-z-]+)", typed, re.MULTILINE))
    assert named >= {"run", "test"}
    named |= {command for text in texts for command in re.findall(r"`make ([a-z-]+)", text)}
    assert named <= targets


def test_ci_runs_the_documented_make_targets_in_order() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line.split()[:2] for line in lines if re.match(r"make\b", line)] == [
        ["make", "controlplane"],
        ["make", "check"],
        ["make", "test-timezones"],
        ["make", "test"],
    ]
