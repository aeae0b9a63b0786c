"""The rendered layout around pages."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import Client, RequestFactory

from broker.services.inventory import gpu_catalogue
from tests.web.ui.style_page import get_style_page
from web.portal.account.sign_in_teaser import partition_gpus, sign_in_teaser
from web.portal.layout import navigation
from web.ui import styleguide
from web.ui.state_badges import BADGES


def rendered(source: str, **values: Any) -> str:
    return Template(source).render(Context(values)).strip()


def test_an_unknown_value_is_shown_as_a_dash() -> None:
    for tag in ('money amount "EUR"', 'price amount "EUR"', "duration amount", "moment amount"):
        assert rendered("{% " + tag + " %}", amount=None) == '<span class="faint money">—</span>', tag


def test_a_state_badge_shows_its_state_in_words() -> None:
    badge = rendered("{% state_badge 'partially_paid' boxed=True %}")
    assert "Partially paid" in badge
    assert 'class="state-badge warning state-badge-boxed"' in badge


def test_an_unknown_state_gets_the_neutral_icon() -> None:
    assert "s-released" in rendered("{% state_badge 'never_heard_of' %}")


def test_markup_in_a_badge_is_escaped() -> None:
    assert "<b>" not in rendered("{% state_badge state %}", state="<b>x</b>")


def test_the_navigation_marks_the_deepest_page_that_is_open() -> None:
    assert navigation.open_page_url("/ops/queue/", ["/ops/", "/ops/queue/"]) == "/ops/queue/"
    assert navigation.open_page_url("/ops/nodes/x/", ["/ops/", "/ops/queue/"]) == "/ops/"
    assert navigation.open_page_url("/leases/", ["/", "/leases/"]) == "/leases/"
    assert navigation.open_page_url("/elsewhere/", ["/"]) is None


@pytest.mark.django_db
def test_an_anonymous_visitor_gets_a_layout_without_navigation() -> None:
    request = RequestFactory().get("/styleguide/")
    request.user = AnonymousUser()
    seen = navigation.page_layout(request)
    assert (seen.nav, seen.user, seen.project) == ((), None, None)


class Tree(HTMLParser):
    """Parser that records unclosed tags and ids."""

    VOID = frozenset(["meta", "link", "input", "br", "hr", "img"])

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


@pytest.mark.django_db
def test_the_style_page_is_well_formed_with_unique_ids() -> None:
    response = get_style_page()
    assert response.status_code == 200
    tree = Tree()
    tree.feed(response.content.decode())
    assert tree.open == []
    assert len(tree.ids) == len(set(tree.ids))
    assert "style-src" in response["Content-Security-Policy"] or "default-src" in response["Content-Security-Policy"]


def test_the_error_page_needs_no_database() -> None:
    values = {"status": 500, "title": "Internal error", "fix": "Try again.", "request_id": "req_1"}
    page = render_to_string("errors/page.html", values, request=RequestFactory().get("/"))
    assert "req_1" in page


@pytest.mark.django_db
def test_the_sign_in_page_has_no_teaser_without_published_offerings() -> None:
    assert sign_in_teaser() is None
    assert "About gpubroker" not in Client().get("/sign-in/").content.decode()


def test_the_gpus_drawn_on_the_sign_in_page_have_valid_partitions() -> None:
    spec = gpu_catalogue.gpu_model_spec("H200-141GB")
    rows = partition_gpus(gpu_catalogue.plain_profiles(spec), spec.grid)
    assert rows
    for gpu in (gpu for row in rows for gpu in row):
        cells = [cell for start, size, _ in gpu for cell in range(start, start + size)]
        assert sorted(cells) == list(range(8)), "every eighth once"


def test_the_style_page_shows_every_component() -> None:
    templates = Path(__file__).parents[3] / "templates"
    shown = "".join(page.read_text() for page in (templates / "styleguide").glob("*.html"))
    shown += (templates / "styleguide/styleguide.html").read_text()
    for component in (templates / "components").glob("[!_]*.html"):
        assert re.search(rf"<c-{component.stem.replace('_', '-')}[\s/>]", shown), component.stem


def test_the_style_page_shows_only_states_that_are_drawn() -> None:
    for state in (*styleguide.LEASE_STATES, *styleguide.INVOICE_STATES, *styleguide.FLEET_STATES):
        assert state in BADGES, state
