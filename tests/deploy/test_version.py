"""Package, chart, image and changelog name the same version."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    released = re.findall(r"^## \[(\d[^]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == VERSION


def test_the_chart_and_its_app_have_this_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@pytest.mark.parametrize("file", ["deploy/compose.yaml", "deploy/Containerfile", "docs/how-to/deploy.md"])
def test_every_image_reference_has_this_version(file: str) -> None:
    named = re.findall(r"gpubroker:(\d+\.\d+\.\d+)", (ROOT / file).read_text())
    assert set(named) == {VERSION}
