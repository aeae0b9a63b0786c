"""The SQL of this floor, read once from `billing/sql/`."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "sql"


@cache
def statement(name: str) -> str:
    """Return the statement of that name."""
    return (FOLDER / f"{name}.sql").read_text()
