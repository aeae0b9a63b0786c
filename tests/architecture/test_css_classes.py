"""CSS classes are words, and the defined ones are those in use."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
STYLES = ROOT / "static" / "css"
ALONE = "replay/report.html"  # written to a file that stands by itself, with a style sheet inside
MARKUP = ("portal", "templatetags", "ui")  # Python that writes markup, or names the kind of what a template draws
SHORT_WORDS = {"js", "row", "tag"}
SCRIPT_HOOKS = {"live"}  # no style: htmx waits for what is typed there
# Every page has what these link; anything else is a page's own.
FRAMES = ("base.html", "base_minimal.html", "base_operators.html", "layout/head.html", "layout/live_updates.html")
FOLDER_OF = {"allauth": "account"}  # the frame of the pages that allauth shows

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SELECTOR = re.compile(r"([^{};]+)\{")
CLASS = re.compile(r"\.([A-Za-z][\w-]*)")
TAG = r"\{%.*?%\}|\{\{.*?\}\}"
ATTRIBUTE = re.compile(rf'(?<![\w:-])class="((?:{TAG}|[^"])*)"', re.DOTALL)
CLASS_BLOCK = re.compile(r"\{% block (?:body_class|columns) %\}(.*?)\{% endblock %\}", re.DOTALL)  # inside class=""
NOTICE_KIND = re.compile(r'<c-notice\b[^>]*\bkind="([^"]+)"')
BUILT_NOTICE_KINDS = re.compile(r'\bnotice\("(\w+)"'), re.compile(r'"kind": "(\w+)",\s+"head"')
WORD = re.compile(r"[A-Za-z][\w-]*")
LINK = re.compile(r"\{% static '((?:css|js)/[\w/]+\.(?:css|js))' %\}")


@cache
def templates() -> dict[str, str]:
    return {str(path.relative_to(TEMPLATES)): path.read_text() for path in sorted(TEMPLATES.rglob("*.html"))}


def classes_of(style: str) -> set[str]:
    """Return the classes that a style sheet's selectors name."""
    return {name for selector in SELECTOR.findall(COMMENT.sub("", style)) for name in CLASS.findall(selector)}


@cache
def defined() -> set[str]:
    return {name for path in STYLES.rglob("*.css") for name in classes_of(path.read_text())}


def used_in(template: str) -> set[str]:
    """Return the class names that a template writes; `fill-` stands for `fill-{{ kind }}`."""
    values = [*ATTRIBUTE.findall(template), *CLASS_BLOCK.findall(template)]
    return {name for value in values for name in re.sub(TAG, " ", value).split()}


@cache
def used_in_templates() -> set[str]:
    return {name for rel, text in templates().items() if rel != ALONE for name in used_in(text)}


@cache
def words_elsewhere() -> tuple[set[str], set[str]]:
    """Return the words in strings of Python and JavaScript, and prefixes of built names."""
    words, beginnings = set(), set()
    for path in (path for folder in MARKUP for path in (ROOT / "web" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words |= set(WORD.findall(node.value))
            elif isinstance(node, ast.JoinedStr):
                written = (part.value for part in node.values if isinstance(part, ast.Constant))
                beginnings |= {found for part in written for found in re.findall(r"[a-z-]+-$", str(part))}
    for path in (ROOT / "static" / "js").glob("*.js"):
        words |= set(WORD.findall(path.read_text()))
    for text in templates().values():
        tags = " ".join(re.findall(r"\{[%{].*?[%}]\}", text, re.DOTALL))
        words |= set(WORD.findall(tags)) | {
            word for kind in re.findall(r'kind="([^"]*)"', text) for word in kind.split()
        }
    return words, beginnings | {name for name in used_in_templates() if name.endswith("-")}


def is_used(name: str) -> bool:
    words, beginnings = words_elsewhere()
    if name in used_in_templates() or name in words:
        return True
    return any(name.startswith(start) and name.removeprefix(start) in words for start in beginnings)


def test_every_class_of_a_template_is_defined() -> None:
    for rel, text in templates().items():
        known = classes_of("".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))) if rel == ALONE else defined()
        for name in used_in(text) - SCRIPT_HOOKS:
            found = any(each.startswith(name) for each in known) if name.endswith("-") else name in known
            assert found, f"templates/{rel}: no style sheet defines .{name}"


def test_every_defined_class_is_used() -> None:
    assert [name for name in sorted(defined()) if not is_used(name)] == []


def test_every_kind_of_a_notice_is_styled() -> None:
    kinds = {kind for text in templates().values() for kind in NOTICE_KIND.findall(text) if "." not in kind}
    for path in (ROOT / "web" / "portal").rglob("*.py"):
        kinds |= {kind for built in BUILT_NOTICE_KINDS for kind in built.findall(path.read_text())}
    styled = {kind for path in STYLES.rglob("*.css") for kind in re.findall(r"\.notice\.([a-z]+) ", path.read_text())}
    assert {"danger", "warning"} <= kinds <= styled


def test_class_names_have_at_least_four_letters() -> None:
    assert [name for name in sorted(defined() - SHORT_WORDS) if len(name) < 4] == []
    assert defined() >= SHORT_WORDS


def test_no_class_is_both_hook_and_styled() -> None:
    assert used_in_templates() >= SCRIPT_HOOKS
    assert defined().isdisjoint(SCRIPT_HOOKS)


def test_a_template_links_at_most_one_own_style_sheet_and_script() -> None:
    shared = {link for rel in FRAMES for link in LINK.findall(templates()[rel])}
    for rel, text in templates().items():
        own = [link for link in LINK.findall(text) if link not in shared]
        if rel not in FRAMES:
            assert sum(link.endswith(".css") for link in own) <= 1, f"templates/{rel} links {own}"
            assert sum(link.endswith(".js") for link in own) <= 1, f"templates/{rel} links {own}"


def test_the_style_sheet_of_a_page_bears_the_name_of_its_folder() -> None:
    shared = {link for rel in FRAMES for link in LINK.findall(templates()[rel])}
    linked = set()
    for rel, text in templates().items():
        for link in LINK.findall(text):
            if link.endswith(".css") and link not in shared:
                folder = Path(rel).parts[0]
                assert link == f"css/{FOLDER_OF.get(folder, folder)}.css", f"templates/{rel} links {link}"
                linked.add(link)
    files = {str(path.relative_to(ROOT / "static")) for path in STYLES.rglob("*.css")}
    assert files == linked | {link for link in shared if link.endswith(".css")}
