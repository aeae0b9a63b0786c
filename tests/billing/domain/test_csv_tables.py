"""CSV tables by RFC 4180 without spreadsheet formulas."""

import csv
from collections.abc import Iterator

import pytest

from billing.domain import csv_tables
from billing.domain.csv_tables import escape_formula, render_csv


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_spreadsheet_formulas_are_escaped_with_an_apostrophe(name: str) -> None:
    assert escape_formula(name) == f"'{name}"


@pytest.mark.parametrize("value", ["-1.50", "+3", "plain", "", 7, None])
def test_numbers_and_plain_text_are_not_escaped(value: object) -> None:
    assert escape_formula(value) == value


def test_quotes_commas_and_line_breaks_are_preserved_in_csv() -> None:
    rows = [("a,b", 'say "x"', "two\nlines")]
    text = "".join(render_csv(("a", "b", "c"), rows))
    assert text.startswith("a,b,c\r\n")
    assert list(csv.reader(text.splitlines(keepends=True)))[1] == list(rows[0])


def test_a_long_csv_table_is_read_lazily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_tables, "CHUNK_LENGTH", 10)
    read = []

    def rows() -> Iterator[tuple[int, ...]]:
        for n in range(100):
            read.append(n)
            yield (n, n, n)

    pieces = render_csv(("a", "b", "c"), rows())
    first = next(pieces)
    assert len(read) < 3
    assert (first + "".join(pieces)).splitlines()[-1] == "99,99,99"
