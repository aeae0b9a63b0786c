"""Templates: content security policy and icons."""

import re
from pathlib import Path

from broker.domain.lifecycle.lease_transitions import NEXT_STATES
from web.ui import state_badges

ROOT = Path(__file__).parents[3]
ALONE = {"replay/report.html"}  # written to a file that stands by itself, never served under the CSP
TEMPLATES = [
    path
    for path in sorted((ROOT / "templates").rglob("*.html"))
    if str(path.relative_to(ROOT / "templates")) not in ALONE
]
SPRITE = set(re.findall(r'id="([is]-[a-z0-9-]+)"', (ROOT / "static" / "icons.svg").read_text()))


def test_no_template_has_an_inline_style_or_script() -> None:
    for path in TEMPLATES:
        text = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text(), flags=re.S)
        text = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", text, flags=re.S)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:", text), path
        for script in re.findall(r"<script\b([^>]*)>", text):
            assert "src=" in script or "application/json" in script, path


def test_every_icon_used_in_a_template_is_in_the_sprite() -> None:
    for path in TEMPLATES:
        for name in re.findall(r'{% icon "([a-z0-9-]+)"', path.read_text()):
            assert f"i-{name}" in SPRITE, f"{path}: add {name} to deploy/vendoring/icons.txt"
        for name in re.findall(r'{% shape "([a-z0-9-]+)"', path.read_text()):
            assert f"s-{name}" in SPRITE, path


def test_every_state_has_a_shape_in_the_sprite() -> None:
    for state, shape in state_badges.BADGES.items():
        assert f"s-{shape.symbol}" in SPRITE, state


def test_every_lease_state_is_drawn_and_no_two_alike() -> None:
    drawn = [state_badges.BADGES[state.value] for state in NEXT_STATES]
    assert len(set(drawn)) == len(drawn)


def test_templates_and_styles_load_nothing_from_other_hosts() -> None:
    for path in [*TEMPLATES, *(ROOT / "static").rglob("*.css")]:
        assert not re.search(r'(src|href|url)[=(]["\']?(https?:)?//', path.read_text()), path
