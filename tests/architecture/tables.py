"""Read tables and API calls from a page, and compare their rows."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
BODY = re.compile(r"<tbody\b[^>]*>(.*?)</tbody>", re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<(t[hd])\b[^>]*>(.*?)</\1>", re.DOTALL)
CAPTION = re.compile(r"<caption[^>]*>(.*?)</caption>", re.DOTALL)
CALL = re.compile(r"<pre\s+class=\"code-block\"[^>]*>(curl.*?)</pre>", re.DOTALL)
ADDRESS = re.compile(r"'http[^/]*//[^/]*(/api/v1[^']*)'")
ID = re.compile(r"\b[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}\b")
NUMBERED = re.compile(r"GPU (\d+)|(\d+) units? @(\d+)")  # what has a number for a name
MOMENT = re.compile(r"datetime=\"([^\"]+)\"")


@dataclass(frozen=True)
class Line:
    """One row with its identifiers, the most specific first."""

    ids: tuple[str, ...]
    moments: tuple[str, ...]
    words: tuple[str, ...]  # the text nodes of its cells, in order

    def is_in(self, known: frozenset[str]) -> bool:
        """Return whether an object is this row, by id, times or name."""
        if self.ids and self.ids[0] in known:
            return True
        name = self.words[0] if self.words else ""
        if self.moments:
            return known.issuperset(self.moments) and (name in known or not self.ids)
        if found := NUMBERED.fullmatch(name):
            return known.issuperset(number for number in found.groups() if number)
        return not self.ids and name in known


@dataclass(frozen=True)
class Table:
    caption: str
    lines: tuple[Line, ...]


def plain(markup: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", markup))).strip()


def texts(markup: str) -> tuple[str, ...]:
    """Return the text nodes of a row's cells."""
    found = [plain(part) for cell in CELL.finditer(markup) for part in re.split(r"<[^>]+>", cell[2])]
    return tuple(part for part in found if part)


def tables(page: str) -> list[Table]:
    """Return the tables of a page that have rows."""
    found = []
    for markup in TABLE.findall(page):
        caption = CAPTION.search(markup)
        rows = [row for body in BODY.findall(markup) for row in ROW.findall(body)]
        lines = tuple(
            Line(tuple(ID.findall(row)), tuple(whole(m) for m in MOMENT.findall(row)), texts(row)) for row in rows
        )
        if lines:
            found.append(Table(plain(caption[1]) if caption else "?", lines))
    return found


def addresses(page: str) -> list[str]:
    """Return the URLs of the read calls in a page's drawers."""
    calls = [html.unescape(text) for text in CALL.findall(page)]
    return [found[1] for call in calls if "-X " not in call and (found := ADDRESS.search(call))]


def whole(text: str) -> str:
    """Normalise the time zone of a timestamp; return other text unchanged."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text
    return str(int(moment.timestamp())) if moment.tzinfo else text


def things(answer: Any) -> Iterator[frozenset[str]]:
    """Yield every object of an answer as the set of its values."""
    if isinstance(answer, dict):
        yield frozenset(said(answer))
        for inner in answer.values():
            yield from things(inner)
    elif isinstance(answer, list):
        for inner in answer:
            yield from things(inner)


def said(answer: Any) -> Iterator[str]:
    if isinstance(answer, dict | list):
        for inner in answer.values() if isinstance(answer, dict) else answer:
            if isinstance(inner, dict) and not isinstance(answer, dict):
                continue  # a list's things are rows of their own
            yield from said(inner)
    elif answer is not None:
        yield whole(answer) if isinstance(answer, str) else json.dumps(answer)


def missing(table: Table, answer: Any) -> list[Line]:
    """Return the rows that are missing in a response."""
    known = [thing for thing in things(answer) if thing]
    return [line for line in table.lines if not any(line.is_in(thing) for thing in known)]
