"""Templates are formatted, with one element per line."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DJANGOFMT = Path(sys.executable).parent / "djangofmt"
COLUMNS = 120


def pages(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.html"))}


def formatted(folder: Path) -> dict[str, str]:
    """Format the templates of a folder in place, by the settings of the repository."""
    subprocess.run([str(DJANGOFMT), "--quiet", str(folder)], cwd=ROOT, check=True, timeout=60)
    return pages(folder)


def test_no_line_of_a_template_is_longer_than_120_columns() -> None:
    for name, text in pages(ROOT / "templates").items():
        for number, line in enumerate(text.splitlines(), start=1):
            assert len(line) <= COLUMNS, f"templates/{name}:{number} has {len(line)} columns"


def test_all_templates_are_formatted_and_formatting_is_idempotent(tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    shutil.copytree(ROOT / "templates", folder)
    written = pages(folder)
    assert formatted(folder) == written
    disturbed = "templates/leases/_cost.html"
    text = (ROOT / disturbed).read_text()
    (tmp_path / disturbed).write_text("\n".join(line.strip() for line in text.splitlines()) + "\n")
    once = formatted(folder)
    assert once == written
    assert formatted(folder) == once


def test_the_check_finds_an_element_that_shares_a_line(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<div><p>One</p><p>Two</p></div>\n")
    found = subprocess.run([str(DJANGOFMT), "--check", str(tmp_path)], cwd=ROOT, check=False, timeout=60)
    assert found.returncode == 1
