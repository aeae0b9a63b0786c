"""Absence of binary floating point in the billing app."""

import ast
from collections.abc import Iterator
from pathlib import Path

import billing

FOLDER = Path(billing.__file__).parent
FLOATS = ["x = 0.1", "float('1')", "x: float = y", "models.FloatField()", "1e9", "2j"]


def find_floats(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield f"line {node.lineno}: {node.value}"
        if isinstance(node, ast.Name) and node.id == "float":
            yield f"line {node.lineno}: float"
        if isinstance(node, ast.Attribute) and node.attr == "FloatField":
            yield f"line {node.lineno}: FloatField"


def test_no_file_of_billing_uses_floating_point() -> None:
    found = {str(file.relative_to(FOLDER)): list(find_floats(file.read_text())) for file in FOLDER.rglob("*.py")}
    assert len(found) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert [source for source in FLOATS if not list(find_floats(source))] == []  # one would be found
