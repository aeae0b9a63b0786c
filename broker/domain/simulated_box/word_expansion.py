"""Expansion of words in a simulated shell: variables, substitutions, splitting and number ranges."""

import re
from collections.abc import Generator
from typing import Protocol

from broker.domain.simulated_box.box_files import BoxLimitExceeded
from broker.domain.simulated_box.box_output import BoxEvent
from broker.domain.simulated_box.box_state import BoxState
from broker.domain.simulated_box.shell_arithmetic import InvalidArithmetic, evaluate
from broker.domain.simulated_box.shell_syntax import PARAMETER, CommandList, ShellWord, WordSegment

MAX_WORDS = 64 * 1024  # characters of the words of a command, with variables replaced
MAX_RANGE = 1000  # numbers of {1..9}
RANGE = re.compile(r"\{(-?\d{1,6})\.\.(-?\d{1,6})\}", re.ASCII)


class ExpansionFailed(Exception):
    """A word cannot be expanded; the text is what a shell would print."""


class Substitution(Protocol):
    """Runs commands in a shell of their own."""

    def __call__(self, commands: CommandList) -> Generator[BoxEvent, None, str]:
        """Yield the events that do not belong to the output, and return the output."""
        ...


class WordExpander:
    """Expands the words of a shell's commands."""

    def __init__(self, box: BoxState, substitute: Substitution) -> None:
        self._box, self._substitute = box, substitute
        self.refuses_unset = False  # set -u

    def expand_words(self, words: tuple[ShellWord, ...]) -> Generator[BoxEvent, None, list[str]]:
        """Return the words of a command, yielding what happens meanwhile."""
        expanded: list[str] = []
        length = 0
        for word in words:
            if (numbers := _number_range(word)) is not None:
                added = numbers
            else:
                text = yield from self.expand(word)
                is_split = any(each.is_replaced for each in word) and not any(each.quoted for each in word)
                added = text.split() if is_split else [text]
            length += sum(map(len, added)) + len(added)
            if length > MAX_WORDS:
                raise BoxLimitExceeded
            expanded += added
        return expanded

    def expand(self, word: ShellWord) -> Generator[BoxEvent, None, str]:
        """Return a word's text without splitting it."""
        text = ""
        for number, segment in enumerate(word):
            added = yield from self._expand_segment(segment)
            if number == 0 and not segment.quoted and (added == "~" or added.startswith("~/")):
                added = self._box.env.get("HOME", "") + added[1:]
            text += added
            if len(text) > MAX_WORDS:
                raise BoxLimitExceeded
        self._box.spend(len(text))
        return text

    def _expand_segment(self, segment: WordSegment) -> Generator[BoxEvent, None, str]:
        if segment.commands is not None:
            output = yield from self._substitute(segment.commands)
            return output.rstrip("\n")
        text = self._replace_parameters(segment.text) if segment.expands else segment.text
        if not segment.is_arithmetic:
            return text
        try:
            return str(evaluate(text, self._box.env))
        except InvalidArithmetic:
            raise ExpansionFailed(f"{segment.text.strip()}: this arithmetic is not imitated") from None

    def _replace_parameters(self, text: str) -> str:
        pieces, at, length = list[str](), 0, 0
        for found in PARAMETER.finditer(text):
            value = self._parameter(found["braced"] or found["plain"], found["default"])
            pieces += [text[at : found.start()], value]
            at, length = found.end(), length + len(value)
            if length > MAX_WORDS:
                raise BoxLimitExceeded
        return "".join([*pieces, text[at:]])

    def _parameter(self, name: str, default: str | None) -> str:
        box = self._box
        special = {"?": str(box.status), "$": "1", "#": "0", "0": "bash", "@": "", "*": "", "PWD": box.directory}
        if name in special:
            return special[name]
        value = box.env.get(name)
        if value is None and default is None and self.refuses_unset:
            raise ExpansionFailed(f"{name}: unbound variable")
        return value or default or ""


def _number_range(word: ShellWord) -> list[str] | None:
    """Return the numbers of a word such as {1..5}; None for any other word."""
    found = RANGE.fullmatch(word[0].text) if len(word) == 1 and not word[0].quoted else None
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    if abs(last - first) >= MAX_RANGE:
        raise BoxLimitExceeded
    step = 1 if last >= first else -1
    return [str(number) for number in range(first, last + step, step)]
