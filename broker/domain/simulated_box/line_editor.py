"""Line editor of a terminal: echo, cursor keys, history and control keys."""

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_LINE_CHARACTERS = 2000
MAX_SEQUENCE = 32  # characters of an escape sequence
MAX_HISTORY = 200
SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z])", re.ASCII)
SEQUENCE_BEGIN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?", re.ASCII)
CONTROL_KEYS = {
    "\x01": "home", "\x02": "left", "\x05": "end", "\x06": "right", "\x08": "backspace", "\x7f": "backspace",
    "\x0b": "cut-right", "\x15": "cut-left", "\x17": "cut-word", "\x10": "up", "\x0e": "down",
}  # fmt: skip
SEQUENCE_KEYS = {  # after ESC and [, or O in application mode
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
    "3~": "delete", "1~": "home", "4~": "end", "7~": "home", "8~": "end",
}  # fmt: skip
BELL = "\a"


class LineEventKind(StrEnum):
    """What a key finished: a whole line, or a control key's action."""

    LINE = "line"
    INTERRUPT = "interrupt"
    END_OF_INPUT = "end-of-input"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class LineEvent:
    """A finished line or a control key."""

    kind: LineEventKind
    text: str = ""


class KeyReader:
    """Splits what a terminal sends into characters and escape sequences."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def read(self, data: bytes) -> Iterator[str]:
        """Yield each key; an unfinished sequence waits for the next data."""
        text, at = self._rest + self._decoder.decode(data), 0
        self._rest = ""
        while at < len(text):
            if text[at] != "\x1b":
                yield text[at]
                at += 1
            elif found := SEQUENCE.match(text, at):
                yield found[0]
                at = found.end()
            elif (
                (begun := SEQUENCE_BEGIN.match(text, at)) and begun.end() == len(text) and len(begun[0]) < MAX_SEQUENCE
            ):
                self._rest = begun[0]
                return
            else:
                at += 1  # not a sequence: its escape character is ignored


class LineEditor:
    """The line being typed."""

    def __init__(self, history: list[str]) -> None:
        self._history = history
        self._text: list[str] = []
        self._cursor = 0
        self._recalled = len(history)  # place in the history; its length: the new line

    def press(self, key: str) -> tuple[str, LineEvent | None]:
        """Return what the terminal must show, and what the key finished."""
        if key in {"\r", "\n"}:
            return "\r\n", LineEvent(LineEventKind.LINE, self._take())
        if key == "\x03":
            self._take(remember=False)
            return "^C\r\n", LineEvent(LineEventKind.INTERRUPT)
        if key == "\x04":
            return ("", LineEvent(LineEventKind.END_OF_INPUT)) if not self._text else (self._delete(), None)
        if key == "\x0c":
            return "", LineEvent(LineEventKind.CLEAR)
        name = SEQUENCE_KEYS.get(key[2:]) if key.startswith("\x1b") else CONTROL_KEYS.get(key)
        if name:
            return self._edit(name), None
        if len(key) > 1 or key < " " or unicodedata.category(key) in {"Cc", "Cf", "Cs"}:
            return "", None
        return self._insert(key), None

    def redraw(self) -> str:
        """Return the line as it stands, with the cursor in its place."""
        return "".join(self._text) + _left(self._text[self._cursor :])

    def _take(self, *, remember: bool = True) -> str:
        line = "".join(self._text)
        if remember and line.strip() and (not self._history or self._history[-1] != line):
            self._history.append(line)
            del self._history[:-MAX_HISTORY]
        self._text, self._cursor, self._recalled = [], 0, len(self._history)
        return line

    def _insert(self, character: str) -> str:
        if len(self._text) >= MAX_LINE_CHARACTERS:
            return BELL
        self._text.insert(self._cursor, character)
        self._cursor += 1
        rest = self._text[self._cursor :]
        return character + "".join(rest) + _left(rest)

    def _delete(self) -> str:
        if self._cursor >= len(self._text):
            return BELL
        return self._cut(self._cursor, self._cursor + 1)

    def _edit(self, name: str) -> str:
        match name:
            case "left":
                return self._go(max(self._cursor - 1, 0))
            case "right":
                return self._go(min(self._cursor + 1, len(self._text)))
            case "home":
                return self._go(0)
            case "end":
                return self._go(len(self._text))
            case "backspace":
                return self._cut(self._cursor - 1, self._cursor) if self._cursor else BELL
            case "delete":
                return self._delete()
            case "cut-left":
                return self._cut(0, self._cursor)
            case "cut-right":
                return self._cut(self._cursor, len(self._text))
            case "cut-word":
                return self._cut(self._word_begin(), self._cursor)
            case "up":
                return self._recall(self._recalled - 1)
            case _:
                return self._recall(self._recalled + 1)

    def _go(self, cursor: int) -> str:
        if cursor <= self._cursor:
            shown = _left(self._text[cursor : self._cursor])
        else:
            shown = "".join(self._text[self._cursor : cursor])
        self._cursor = cursor
        return shown

    def _cut(self, begin: int, end: int) -> str:
        """Delete the characters between two places and go to the first."""
        moved, removed = self._go(begin), self._text[begin:end]
        del self._text[begin:end]
        rest, blank = self._text[begin:], [" "] * _width(removed)
        return moved + "".join(rest + blank) + _left(rest + blank)

    def _word_begin(self) -> int:
        before = "".join(self._text[: self._cursor]).rstrip()
        return len(before) - len(before.split(" ")[-1])

    def _recall(self, place: int) -> str:
        if not 0 <= place <= len(self._history):
            return BELL
        shown = self._go(0) + self._cut(0, len(self._text))
        self._recalled = place
        self._text = list(self._history[place]) if place < len(self._history) else []
        self._cursor = len(self._text)
        return shown + "".join(self._text)


def _width(characters: Sequence[str]) -> int:
    """Return the columns that characters take on a terminal."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in characters
    )


def _left(characters: Sequence[str]) -> str:
    """Return what moves a terminal's cursor left over characters."""
    return "\b" * _width(characters)
