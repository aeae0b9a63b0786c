import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import billing

FILES = sorted(Path(billing.__file__).parent.rglob("*.py"))


def floats(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield f"line {node.lineno}: {node.value}"
        if isinstance(node, ast.Name) and node.id == "float":
            yield f"line {node.lineno}: float"
        if isinstance(node, ast.Attribute) and node.attr == "FloatField":
            yield f"line {node.lineno}: FloatField"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FILES[0].parent).as_posix())
def test_no_file_of_billing_knows_a_binary_fraction(path: Path) -> None:
    assert list(floats(path.read_text())) == []


@pytest.mark.parametrize(
    "source", ["x = 0.1", "float('1')", "x: float = y", "models.FloatField()", "1e9", "2j"]
)
def test_a_binary_fraction_would_be_found(source: str) -> None:
    assert list(floats(source))
