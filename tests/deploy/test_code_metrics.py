"""`make house-figures` counts the repository correctly."""

import json
from pathlib import Path

import pytest

from deploy import code_metrics

ROOT = Path(__file__).parents[2]


def test_names_docstrings_and_templates_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/glossary.md").write_text((ROOT / "docs/glossary.md").read_text())
    monkeypatch.chdir(tmp_path)
    written = {
        "billing/told.py": f'"""{"word " * 21}"""\n\n\nclass Slice: ...\n',
        "billing/knocking.py": f'"""{"word " * 16}"""\n',
        "billing/migrations/0001_initial.py": "x = 1\n",
        "templates/page.html": f"<p>\n{'x' * 121}\n</p>\n",
    }
    for name, text in written.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    found = {each.name: each.value for each in code_metrics.count_code_metrics(list(map(Path, written)))}
    assert list(found.values()) == [2, 1, 2, 0, 1, 1, 43, 1, 5]


def test_a_metric_above_its_goal_is_not_ok() -> None:
    assert json.loads(code_metrics.CodeMetric("migrations", 17, 16).line())["ok"] is False
    assert json.loads(code_metrics.CodeMetric("migrations", 16, 16).line())["ok"] is True
