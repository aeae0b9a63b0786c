"""Translation markup of visible text in templates and page modules (docs/decisions/0042)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = "styleguide"  # invented text that only developers read
BRAND = {"gpubroker", "gpb_"}
UNITS = {"CSV", "FOCUS", "GB", "GiB", "PDF", "UTC", "h", "p50", "p95", "s", "kWh", "W"}

COMMENT = r"\{% comment %\}.*?\{% endcomment %\}|\{#.*?#\}|<!--.*?-->|<!doctype[^>]*>"
MARKED = r"\{% blocktranslate\b.*?\{% endblocktranslate %\}"
NOT_TEXT = r"<(?P<raw>script|style|svg|pre|code)\b[^>]*>.*?</(?P=raw)>"
SKIPPED = re.compile(f"{COMMENT}|{MARKED}|{NOT_TEXT}", re.DOTALL | re.IGNORECASE)
DJANGO = re.compile(r"\{%.*?%\}|\{\{.*?\}\}")
TAG = re.compile(r"</?(?P<name>[a-zA-Z][\w.:-]*)(?P<attributes>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
ATTRIBUTE = re.compile(r"([\w:-]+)=\"([^\"]*)\"")
# Arguments of filters, of included templates and of the product's tags; `_("…")` is marked.
ARGUMENT = re.compile(
    r"\|(?:default|default_if_none|pluralize|yesno):\"([^\"]*)\"|"
    r"\b(?:caption|label|note|title|verb|what|word)=\"([^\"]*)\""
)
ELEMENT_TEXTS = {"alt", "aria-label", "placeholder", "title"}
COMPONENT_TEXTS = ELEMENT_TEXTS | {"caption", "error", "here", "hint", "keep", "label", "note", "sub", "tag", "verb"}


# Arguments of form fields, confirmations and refusals that people read.
PYTHON_TEXTS = {"done", "fix", "help_text", "hint", "label", "title", "verb"}


def unmarked(template: str) -> list[str]:
    """Return the visible texts of a template that are outside translation markup."""
    source = SKIPPED.sub("", template)
    texts = [text for token in DJANGO.findall(source) for found in ARGUMENT.findall(token) for text in found]
    source = DJANGO.sub("", source)
    for tag in TAG.finditer(source):
        visible = COMPONENT_TEXTS if tag["name"].startswith("c-") else ELEMENT_TEXTS
        texts += [value for name, value in ATTRIBUTE.findall(tag["attributes"]) if name in visible]
    texts += TAG.sub("\0", source).split("\0")
    return [" ".join(text.split()) for text in texts if says_something(text)]


def says_something(text: str) -> bool:
    words = re.findall(r"[^\W\d_]\w*", re.sub(r"&\w+;", "", text))
    return bool(set(words) - BRAND - UNITS)


def test_every_visible_text_of_a_template_is_marked() -> None:
    templates = [path for kind in ("html", "txt") for path in sorted((ROOT / "templates").rglob(f"*.{kind}"))]
    found = {
        str(path.relative_to(ROOT)): texts
        for path in templates
        if SAMPLES not in path.parts and (texts := unmarked(path.read_text()))
    }
    assert found == {}


def test_the_check_finds_text_attributes_and_arguments_without_markup() -> None:
    template = """
      <p title="A title">Some <b>text</b> of {{ name }}</p>
      <c-panel label="A label" kind="danger">{{ count }} s, gpubroker</c-panel>
      {% include "list.html" with caption="A caption" %}
      {{ state|default:"none" }}
    """
    assert sorted(unmarked(template)) == ["A caption", "A label", "A title", "Some", "none", "of", "text"]


def test_the_check_accepts_marked_text_and_code() -> None:
    template = """
      <p title="{% translate 'A title' %}">{% translate "Some text" %} {{ _("and more") }}</p>
      <c-panel label="{% blocktranslate trimmed with name=page.name %}
        A label of {{ name }}
      {% endblocktranslate %}">
        {% blocktranslate count n=count %}one <b>GPU</b>{% plural %}{{ n }} GPUs{% endblocktranslate %}
      </c-panel>
      {% include "list.html" with caption=_("A caption") %}
      {{ state|default:_("none") }} <code>make run</code> {# a comment #}
    """
    assert unmarked(template) == []


def unmarked_arguments(module: ast.Module) -> Iterator[str]:
    """Yield the visible arguments of calls that are literals outside `gettext`."""
    for call in ast.walk(module):
        for argument in call.keywords if isinstance(call, ast.Call) else ():
            if argument.arg in PYTHON_TEXTS and says_something(literal_text(argument.value)):
                yield literal_text(argument.value)


def literal_text(value: ast.expr) -> str:
    """Return the text of a string or of an f-string without its values."""
    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
    return " ".join(part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_visible_arguments_in_page_modules_are_marked() -> None:
    found = {
        str(path.relative_to(ROOT)): texts
        for path in sorted((ROOT / "web" / "portal").rglob("*.py"))
        if (texts := list(unmarked_arguments(ast.parse(path.read_text()))))
    }
    assert found == {}


def test_the_check_of_modules_finds_labels_and_f_strings() -> None:
    module = ast.parse(
        """
Field(label="Name", help_text=_("marked"), kind="danger")
Confirmation(title=f"End {what}?", verb=f"{verb} {what}")
"""
    )
    assert list(unmarked_arguments(module)) == ["Name", "End  ?"]
