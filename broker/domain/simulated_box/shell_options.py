"""Options of a simulated shell, as `set` and the arguments of `sh` state them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

FIELDS = {
    "e": "exits_on_error",
    "errexit": "exits_on_error",
    "u": "refuses_unset",
    "nounset": "refuses_unset",
    "x": "traces",
    "xtrace": "traces",
    "pipefail": "fails_in_pipes",
}
IGNORED = {"l", "i", "h", "B", "b", "m", "a", "f", "v", "C", "E", "T"}  # they change nothing that a box imitates


class InvalidOption(Exception):
    """An option that no shell knows."""


@dataclass(frozen=True, slots=True)
class ShellOptions:
    """What a shell does about errors, unset variables and commands it runs."""

    exits_on_error: bool = False
    refuses_unset: bool = False
    fails_in_pipes: bool = False
    traces: bool = False


def parse_set(words: Sequence[str], options: ShellOptions) -> ShellOptions:
    """Return the options after a `set`; raises InvalidOption."""
    return _parse_options(words, options)[0]


def parse_shell_call(words: Sequence[str]) -> tuple[ShellOptions, str | None]:
    """Return the options and the line of `sh -c LINE`; no line for anything else."""
    try:
        options, rest, has_line = _parse_options(words, ShellOptions())
    except InvalidOption:
        return ShellOptions(), None
    return options, rest[0] if has_line and rest else None


def _parse_options(words: Sequence[str], options: ShellOptions) -> tuple[ShellOptions, list[str], bool]:
    rest, has_line = list(words), False
    while rest and len(rest[0]) > 1 and rest[0][0] in "-+" and rest[0] != "--":
        word = rest.pop(0)
        for letter in word[1:]:
            if letter == "c":
                has_line = True
                continue
            name = rest.pop(0) if letter == "o" and rest else letter
            if name in FIELDS:
                options = replace(options, **{FIELDS[name]: word[0] == "-"})
            elif name not in IGNORED:
                raise InvalidOption(f"{word[0]}{name}: invalid option")
    return options, rest, has_line
