"""Visible text of a page."""

from html import unescape
from typing import Any

from django.utils.html import strip_tags


def page_words(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())
