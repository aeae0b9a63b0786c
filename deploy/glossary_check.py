"""Check names and docstrings against docs/glossary.md: `python -m deploy.glossary_check`."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GLOSSARY = Path("docs/glossary.md")
LAYERS = ("config", "web", "billing", "broker", "tenants", "ports")
ALLOWED_TWICE = 2  # a class name in more places than that means several things
REPORTED_WORDS, REFUSED_WORDS = 15, 20  # of a docstring's first line
FRAMEWORK_CLASSES = {"Meta", "Config", "Command"}  # Django gives these their names
FRAMEWORK_FUNCTIONS = {"post"}  # the HTTP method of a view
# Last words of module names that end in -ing and are nouns of the field.
FIELD_NOUNS = {
    "accounting", "billing", "dunning", "formatting", "invoicing", "mapping", "matching", "metering", "numbering",
    "packing", "posting", "pricing", "rating", "rendering", "routing", "scheduling",
}  # fmt: skip


@dataclass(frozen=True)
class Definition:
    """A named module, class or public function, with the first line of its docstring."""

    place: str  # path:line
    kind: str
    name: str
    summary: str


def read_banned_names(glossary: str) -> set[str]:
    """Return the names that the glossary's last section bans."""
    section = glossary.partition("## Banned as names")[2].split("## ")[0]
    return set(re.findall(r"[a-z]+", re.sub(r"\([^)]*\)", "", section)))


def read_replaced_words(glossary: str) -> set[str]:
    """Return the single words of the plumbing table that another word replaces."""
    table = glossary.partition("## Plumbing")[2].partition("## ")[0]
    rows = [line.strip("| ").split("|") for line in table.splitlines() if line.startswith("| **")]
    listed = [word.strip() for row in rows if len(row) == 3 for word in row[2].split(",")]
    return {word for word in listed if re.fullmatch(r"[a-z_]+", word)}


def find_definitions(path: Path) -> Iterator[Definition]:
    """Yield the module, its classes and its functions."""
    tree = ast.parse(path.read_text())
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    yield Definition(f"{path}:1", "module", stem, _summary(tree))
    yield from _find_members(path, tree)


def _find_members(path: Path, parent: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Yield classes and functions, without those inside functions, which are local."""
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield Definition(f"{path}:{node.lineno}", "class", node.name, _summary(node))
            yield from _find_members(path, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Definition(f"{path}:{node.lineno}", "function", node.name, _summary(node))


def _summary(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the first line of a docstring."""
    return (ast.get_docstring(node) or "").split("\n")[0]


def find_faults(definitions: list[Definition], banned: set[str], replaced: set[str]) -> Iterator[str]:
    """Yield a line for every name or docstring that breaks a rule."""
    places = defaultdict(list)
    for each in definitions:
        bare = each.name.lower().strip("_")
        private = each.kind == "function" and (each.name.startswith("_") or each.name in FRAMEWORK_FUNCTIONS)
        if not private and bare in banned | replaced:
            yield f"{each.place} {each.kind} {each.name}: docs/glossary.md bans this name"
        if each.kind == "module" and each.name.endswith("ing") and each.name.split("_")[-1] not in FIELD_NOUNS:
            yield f"{each.place} module {each.name}: name it by a noun of the field"
        if len(each.summary.split()) > REFUSED_WORDS:
            yield f"{each.place} {each.kind} {each.name}: first docstring line has more than {REFUSED_WORDS} words"
        if each.kind == "class" and each.name not in FRAMEWORK_CLASSES:
            places[each.name].append(each.place)
    for name, found in places.items():
        if len(found) > ALLOWED_TWICE:
            yield f"{found[0]} class {name}: also in {', '.join(found[1:])}; each class has a name of its own"


def find_long_summaries(definitions: list[Definition]) -> Iterator[str]:
    """Yield a line for every first docstring line that is longer than it should be."""
    for each in definitions:
        if REPORTED_WORDS < len(each.summary.split()) <= REFUSED_WORDS:
            yield f"{each.place} {each.kind} {each.name}: first docstring line has more than {REPORTED_WORDS} words"


def main() -> int:
    """Print what breaks a rule; fail if anything does."""
    glossary = GLOSSARY.read_text()
    files = (file for layer in LAYERS for file in sorted(Path(layer).rglob("*.py")) if "migrations" not in file.parts)
    definitions = [each for file in files for each in find_definitions(file)]
    for line in find_long_summaries(definitions):
        print(f"note: {line}")
    faults = list(find_faults(definitions, read_banned_names(glossary), read_replaced_words(glossary)))
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
