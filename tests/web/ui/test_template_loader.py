"""Pages are sent without the line breaks of their template files."""

import pytest
from django.template import engines
from django.template.loader import get_template

from web.ui.template_loader import join_lines


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("<ul>\n  <li>\n    a\n  </li>\n\n</ul>\n", "<ul><li>a</li></ul>"),
        ("<b>a</b>\n<b>b</b>\nc", "<b>a</b> <b>b</b> c"),
        ("{% if a %}\n  <td>\n    a\n  </td>\n{% endif %}\n", "{% if a %}<td>a</td>{% endif %} "),
        ("{% comment %}\nA <script>\n{% endcomment %}\na\nb", " a b"),
        ('<input\n  name="a"\n  required\n>', '<input name="a" required>'),
        ('<c-notice\n  kind="warning"\n/>', '<c-notice kind="warning"/>'),
        ("a<b\n>c</b\n>.", "a<b>c</b>."),
        ('a\n<button\n  type="button"\n>\n  b\n</button>\nc', 'a <button type="button">b</button> c'),
        ("a\n{% if b %}\n  <b>c</b>\n{% endif %}\nd", "a {% if b %}<b>c</b>{% endif %} d"),
        ("a\n{% if b %}\n  c\n{% else %}\n  d\n{% endif %}.", "a {% if b %}c {% else %} d {% endif %}."),
        ("a{% if b %}\n  c\n{% endif %}", "a{% if b %} c {% endif %}"),
        ("<p>\n  a  b\n</p>", "<p>a  b</p>"),
    ],
)
def test_a_line_break_becomes_one_space_or_nothing_next_to_a_block(written: str, sent: str) -> None:
    assert join_lines(written) == sent


@pytest.mark.parametrize("kept", ["pre", "textarea", "script", "style"])
def test_preformatted_elements_keep_their_line_breaks(kept: str) -> None:
    assert join_lines(f"<p>\n<{kept} a>\n  b\n    c\n</{kept}>\n</p>") == f"<p><{kept} a>\n  b\n    c\n</{kept}></p>"


def test_templates_of_the_product_are_loaded_without_line_breaks() -> None:
    source = get_template("components/table.html").template.source
    assert "<table" in source
    assert "\n" not in source


def test_email_templates_keep_their_line_breaks() -> None:
    assert "\n" in engines["django"].get_template("account/email/base_notification.txt").template.source
