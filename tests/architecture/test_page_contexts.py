"""Pages hand their template one typed object or at most ten names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"
VIEWS = sorted((ROOT / "web").rglob("*.py"))
INCLUDED = re.compile(r'{% include "([^"]+)"')
READ_OF_PAGE = re.compile(r"(?<![\w./])page\.([A-Za-z_]\w*)")
MOST_NAMES = 10
MOST_STEPS = 6  # from a variable to what it is made of
Functions = dict[str, ast.FunctionDef]


def names_in(value: ast.expr, inside: ast.FunctionDef, functions: Functions, steps: int = MOST_STEPS) -> set[str]:
    """Return the keys of a dictionary, through the variables and functions that make it."""
    own: set[str] = set()
    parts: list[ast.expr] = []
    if isinstance(value, ast.Dict):
        own = {ast.unparse(key) for key in value.keys if key}
        parts = [each for key, each in zip(value.keys, value.values, strict=True) if key is None]
    elif isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.Name):
        own, parts = set_keys(value.id, inside), list(set_values(value.id, inside))
    elif isinstance(value, ast.Call) and (made_by := functions.get(getattr(value.func, "id", ""))):
        inside = made_by
        parts = [step.value for step in ast.walk(made_by) if isinstance(step, ast.Return) and step.value]
    return own.union(*(names_in(part, inside, functions, steps - 1) for part in parts if steps))


def set_keys(name: str, inside: ast.FunctionDef) -> set[str]:
    """Return the keys that are set in a variable one by one."""
    return {
        ast.unparse(node.slice)
        for node in ast.walk(inside)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == name
    }


def set_values(name: str, inside: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield what a variable is set to or extended by."""
    for step in ast.walk(inside):
        if isinstance(step, ast.Assign | ast.AnnAssign | ast.AugAssign) and step.value:
            targets = step.targets if isinstance(step, ast.Assign) else [step.target]
            if name in [getattr(target, "id", "") for target in targets]:
                yield step.value


def long_contexts(source: str) -> list[tuple[str, int]]:
    """Return the views that hand a template too many names, and how many."""
    functions = {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    counts = [
        (view.name, len(names_in(call.args[2], view, functions)))
        for view in functions.values()
        for call in ast.walk(view)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "render" and len(call.args) > 2
    ]
    return [(view, count) for view, count in counts if count > MOST_NAMES]


def test_no_page_hands_its_template_a_long_dictionary() -> None:
    found = {str(view.relative_to(ROOT)): long_contexts(view.read_text()) for view in VIEWS}
    assert {view: long for view, long in found.items() if long} == {}, "hand over one typed `page` instead"


def test_names_of_merged_dictionaries_are_counted_together() -> None:
    source = """
def show(request):
    told = {"a": 1, "b": 2, **more_of(request)} | {"c": 3}
    told["d"] = 4
    told |= {"e": 5, "f": 6}
    return render(request, "page.html", told)

def more_of(request):
    found = {"g": 7, "h": 8, "i": 9, "j": 10}
    return found | {"k": 11}
"""
    assert long_contexts(source) == [("show", 11)]
    assert long_contexts(source.replace('"k"', '"j"')) == []


def with_included(template: str) -> set[str]:
    """Return a template and all that it includes."""
    found, new = set[str](), {template}
    while new:
        found |= new
        new = {each for one in new for each in INCLUDED.findall((TEMPLATES / one).read_text())} - found
    return found


def attributes_of_classes(tree: ast.Module) -> set[str]:
    """Return what the classes of a file have: fields, constants and properties."""
    found = set[str]()
    for step in (step for each in tree.body if isinstance(each, ast.ClassDef) for step in each.body):
        targets = step.targets if isinstance(step, ast.Assign) else [getattr(step, "target", None)]
        found |= {getattr(step, "name", ""), *(getattr(target, "id", "") for target in targets)}
    return found


def test_templates_read_only_existing_attributes_of_their_page() -> None:
    """Django shows a name that does not exist as nothing."""
    unknown, read = set[tuple[str, str]](), 0
    for view in VIEWS:
        tree = ast.parse(view.read_text())
        texts = {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        shown = {text for text in texts if text.endswith(".html") and (TEMPLATES / text).is_file()}
        for template in set[str]().union(*map(with_included, shown)):
            names = set(READ_OF_PAGE.findall((TEMPLATES / template).read_text()))
            unknown |= {(template, name) for name in names - attributes_of_classes(tree)}
            read += len(names)
    assert unknown == set()
    assert read > 300
