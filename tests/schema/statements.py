"""Describe a database schema as statements that can be stored, renamed and compared.

The statements come from the system catalogues and not from pg_dump, whose output depends on its version.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

CATALOGUE = Path(__file__).parent / "catalogue.sql"
GENERATED = "(generated)"
NAMED = re.compile(
    r"ALTER TABLE (?P<table>\w+) ADD CONSTRAINT (?P<constraint>\w+) "
    r"|CREATE (?:UNIQUE )?INDEX (?P<index>\w+) ON (?P<indexed>\w+) "
)
COMMENT = re.compile(r"('(?:[^']|'')*')|--[^\n]*")
ONE_TABLE = re.compile(r"CREATE OR REPLACE VIEW .*\bFROM (\w+)\b(?!.*\b(?:JOIN|FROM)\b)", re.DOTALL)


class Change(NamedTuple):
    """Words to replace in statements, perhaps only in some."""

    old: str
    new: str = ""
    within: str = ""

    def concerns(self, statement: str) -> bool:
        """Return whether the change applies to a statement."""
        return contains(statement, self.old) and (not self.within or contains(statement, self.within))


def describe(connection: psycopg.Connection[Any]) -> list[str]:
    """Return the sorted statements that describe the schema of a database."""
    rows = connection.execute(CATALOGUE.read_bytes()).fetchall()
    return sorted(normalise(str(statement)) for (statement,) in rows)


def normalise(statement: str) -> str:
    """Remove comments, generated names and the qualifiers that differ between PostgreSQL versions."""
    statement = COMMENT.sub(lambda found: found[1] or "", statement)
    if single := ONE_TABLE.match(statement):  # PostgreSQL 15 qualifies columns in a view of one table
        statement = re.sub(rf"\b{single[1]}\.", "", statement)
    lines = [line.rstrip() for line in statement.splitlines() if line.strip()]
    return _hide_generated_name("\n".join([lines[0].lstrip(), *(f"  {line}" for line in lines[1:])]))


def _hide_generated_name(statement: str) -> str:
    """Rename a constraint or index with its table."""
    found = NAMED.match(statement)
    if not found:
        return statement
    table, group = (found["table"], "constraint") if found["table"] else (found["indexed"], "index")
    if not re.fullmatch(rf".*_[0-9a-f]{{8}}(_fk_\w+|_fk|_uniq|_like)?|{table}_\w*(key|check)", found[group]):
        return statement
    return statement[: found.start(group)] + GENERATED + statement[found.end(group) :]


def parse(text: str) -> list[str]:
    """Split a stored description: a statement begins at the margin, its further lines are indented."""
    return [each.rstrip("\n") for each in re.split(r"\n(?=\S)", text) if not each.startswith("--")]


def parse_changes(text: str) -> list[Change]:
    """Read lines of `old<TAB>new<TAB>within`; # begins a comment."""
    return [Change(*line.split("\t")) for line in text.splitlines() if line and not line.startswith("#")]


def apply_changes(statements: Iterable[str], changes: Sequence[Change]) -> list[str]:
    """Remove and rename what a list of changes names."""
    kept = []
    for statement in statements:
        ours = [each for each in changes if each.concerns(statement)]
        if all(each.new for each in ours):
            kept.append(_rename(statement, sorted(ours, key=lambda each: bool(each.within))))
    return kept


def _rename(statement: str, changes: Sequence[Change]) -> str:
    """Apply renamings at once; later ones override."""
    words = {each.old: each.new for each in changes}
    if not words:
        return statement
    longest_first = sorted(words, key=len, reverse=True)
    return re.sub(_whole_words(longest_first), lambda found: words[found[0]], statement)


def contains(statement: str, words: str) -> bool:
    """Return whether a statement contains whole words."""
    return bool(re.search(_whole_words([words]), statement))


def _whole_words(phrases: Iterable[str]) -> str:
    return rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)"


def comparable(statements: Iterable[str]) -> list[str]:
    """Return normalised, sorted statements."""
    return sorted(re.sub(r"\s*([(),])\s*", r"\1", " ".join(each.split())) for each in statements)
