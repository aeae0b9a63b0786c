"""The first page transfers at most 100 kB."""

import gzip
import re
from pathlib import Path

import pytest

from tests.web.ui.style_page import get_style_page

STATIC = Path(__file__).parents[3] / "static"
LIMIT = 100_000


def weight(path: Path) -> int:
    body = path.read_bytes()
    return len(body) if path.suffix == ".woff2" else len(gzip.compress(body, 6))


@pytest.mark.django_db
def test_the_first_page_weighs_at_most_100_kb_with_fonts_styles_and_scripts() -> None:
    page = get_style_page().content.decode()
    named = set(re.findall(r'(?:href|src)="/static/([^"#?]+)', page)) | {"vendor/fonts/mono.woff2"}
    largest = {name: weight(STATIC / name) for name in named}
    extra = {"vendor/uPlot.iife.min.js", "vendor/uPlot.min.css", "js/charts.js", "css/styleguide.css"}
    usual = sum(size for name, size in largest.items() if name not in extra)
    assert usual + 10_000 <= LIMIT, sorted(largest.items(), key=lambda item: -item[1])[:6]
