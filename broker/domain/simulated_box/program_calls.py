"""Calls of programs in a simulated box, and their results."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.domain.simulated_box.box_files import BoxFileError
from broker.domain.simulated_box.box_state import BoxState

EXIT_MISUSED = 2


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call of a program."""

    box: BoxState
    arguments: tuple[str, ...]
    piped: str = ""  # standard input

    @property
    def flags(self) -> str:
        """Return the letters of its short options."""
        return "".join(each[1:] for each in self.arguments if each.startswith("-") and len(each) > 1)

    @property
    def operands(self) -> tuple[str, ...]:
        """Return the arguments that are not options."""
        return tuple(each for each in self.arguments if not each.startswith("-") or each == "-")


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program prints, how long it takes and how it ends."""

    text: str = ""
    error: str = ""
    status: int = 0
    wait_s: float = 0.0  # before it prints
    runs_on: bool = False  # until its box ends
    exits: bool = False  # it ends the shell


Program = Callable[[ProgramCall], ProgramResult]


def join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def read_each(call: ProgramCall, name: str, convert: Callable[[str], str]) -> ProgramResult:
    """Convert the text of each file, or without one the standard input."""
    if not call.operands:
        return ProgramResult(convert(call.piped))
    texts, errors = [], []
    for path in call.operands:
        try:
            text = call.piped if path == "-" else call.box.files.read(call.box.resolve(path))
            texts.append(convert(text))
        except BoxFileError as error:
            errors.append(f"{name}: {path}: {error}\n")
    return ProgramResult("".join(texts), "".join(errors), int(bool(errors)))


def read_all(call: ProgramCall, name: str) -> tuple[str, str]:
    """Return the text of all files together, or of the standard input; and the errors."""
    read = read_each(call, name, lambda text: text)
    return read.text, read.error
