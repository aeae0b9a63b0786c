"""Lines of a lease's log: their bounds, their stored form, and their levels."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

MAX_LINE_BYTES = 4096
LEVEL_SEARCH_LENGTH = 200  # a level is looked for at the beginning of a line only
SKIPPED_TEXT = "Lines are missing here: the program wrote more than can be collected."
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")  # all control characters but tab, newline and escape
TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[#%()*+./-]?[0-~]"  # character sets, such as ESC ( B of tput sgr0
)


class LineSource(StrEnum):
    """Who wrote a line: the lease's program, or the platform that runs it."""

    PROGRAM = "program"
    PLATFORM = "platform"


class LogLevel(StrEnum):
    """How serious a line is, as far as its text says."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NONE = ""


LEVEL_PATTERNS = (
    (
        LogLevel.ERROR,
        re.compile(r"\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE)\b|^Traceback \(|^\w+(?:Error|Exception)\b|\b[Ee]rror:"),
    ),
    (LogLevel.WARNING, re.compile(r"\bWARN(?:ING)?\b|\b[Ww]arning:")),
    (LogLevel.INFO, re.compile(r"\bINFO\b|\b[Ii]nfo:")),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of output; `at` is aware UTC."""

    at: datetime
    text: str
    source: LineSource = LineSource.PROGRAM

    @property
    def level(self) -> LogLevel:
        return level_of(self.text)


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A stored line with its number in the log, which never changes."""

    number: int
    line: LogLine


def clean_text(text: str) -> str:
    """Return a line that can be stored: no control characters, bounded length.

    Sequences that colour a terminal are removed; a longer line is cut, and says how much.
    """
    return bounded_text(plain_text(text))


def bounded_text(text: str) -> str:
    """Return a line cut to the stored length, saying how much is missing."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= MAX_LINE_BYTES:
        return raw.decode()
    kept = raw[:MAX_LINE_BYTES].decode("utf-8", "ignore")
    return f"{kept} … ({len(raw) - len(kept.encode()):,} bytes cut)"


def plain_text(text: str) -> str:
    """Return a line without control characters and terminal sequences, whatever its length."""
    if "\x1b" in text or "\x9b" in text:
        text = TERMINAL_SEQUENCE.sub("", text).replace("\x1b", "")
    text = text.rstrip("\r\n")
    if "\r" in text:  # a progress bar draws over itself: its last state counts
        text = text.rsplit("\r", 1)[1] or text.replace("\r", " ")
    return NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", " "))


def level_of(text: str) -> LogLevel:
    """Return the level that a line states; none if it states none."""
    beginning = text[:LEVEL_SEARCH_LENGTH]
    return next((level for level, pattern in LEVEL_PATTERNS if pattern.search(beginning)), LogLevel.NONE)


def encode_lines(lines: Iterable[LogLine]) -> str:
    """Return the stored form: one line each, `<microseconds> <source> <text>`."""
    return "".join(f"{_microseconds(line.at)} {line.source[:2]} {line.text}\n" for line in lines)


def decode_lines(body: str, *, first: int) -> Iterator[NumberedLine]:
    """Yield the lines of a stored body; `first` is the number of its first line."""
    sources = {source[:2]: source for source in LineSource}
    for number, row in enumerate(body.split("\n")[:-1], first):
        moment, source, text = row.split(" ", 2)
        yield NumberedLine(number, LogLine(EPOCH + timedelta(microseconds=int(moment)), text, sources[source]))


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)
