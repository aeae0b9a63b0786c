"""Shell of a simulated box: runs command lines by imitation.

A running line is an iterator of outputs and pauses. Its caller decides how to wait, and may abandon it.
"""

import posixpath
import shlex
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

from broker.domain.simulated_box.box_files import BoxFileError, BoxLimitExceeded
from broker.domain.simulated_box.box_output import BoxEvent, BoxOutput, BoxPause
from broker.domain.simulated_box.box_programs import NEEDS_GPU, available_programs
from broker.domain.simulated_box.box_state import BoxState
from broker.domain.simulated_box.program_calls import ProgramCall, ProgramResult
from broker.domain.simulated_box.shell_options import InvalidOption, ShellOptions, parse_set, parse_shell_call
from broker.domain.simulated_box.shell_syntax import (
    COPIED,
    NAME,
    ChainedPipeline,
    CommandList,
    ForCommand,
    GroupCommand,
    IfCommand,
    InvalidSyntax,
    Redirection,
    ShellCommand,
    SimpleCommand,
    UnsupportedSyntax,
    WhileCommand,
    parse_command_line,
)
from broker.domain.simulated_box.word_expansion import ExpansionFailed, WordExpander

MAX_COMMANDS = 5000  # of one line, with the rounds of its loops
MAX_OUTPUT = 256 * 1024  # characters of one line
MAX_NESTING = 4  # of shells within shells
NOT_FOUND, MISUSED = 127, 2
SHELLS = {"sh", "bash"}
PREFIXES = {"command", "exec", "nohup", "time"}  # programs that run the rest of their words
PYTHONS, VERSION_OPTIONS = {"python", "python3"}, (["--version"], ["-V"])
PROGRAM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/usr/sbin", "/sbin"}
Result = TypeVar("Result")
STREAM_PATHS = {"/dev/stdout": False, "/dev/stderr": True}


@dataclass(frozen=True, slots=True)
class Destination:
    """Target of a stream: a file, or the caller's output or errors."""

    path: str = ""
    is_error: bool = False


@dataclass(slots=True)
class BoxInput:
    """Standard input of commands, from which `read` takes lines."""

    text: str = ""

    def take_line(self) -> str | None:
        """Take the first line; None at the end."""
        line, newline, rest = self.text.partition("\n")
        if not self.text:
            return None
        self.text = rest if newline else ""
        return line


@dataclass(frozen=True, slots=True)
class _Streams:
    """Where a command reads from and prints to."""

    source: BoxInput
    output: Destination = Destination()
    error: Destination = Destination(is_error=True)


class ShellExited(Exception):
    """The shell ended by `exit`, or by an error after `set -e`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class LoopLeft(Exception):
    """A `break` or `continue` was run."""

    def __init__(self, levels: int, *, continues: bool) -> None:
        super().__init__(levels)
        self.levels, self.continues = levels, continues


class BoxShell:
    """A shell in a box."""

    def __init__(self, box: BoxState, *, imitates_programs: bool) -> None:
        self.box = box
        self._imitates_programs = imitates_programs  # unknown programs run on instead of being refused
        self._expander = WordExpander(box, self._substitute)
        self._options = ShellOptions()
        self._begin_line()

    def run(self, line: str) -> Iterator[BoxEvent]:
        """Run a command line; raises ShellExited when it ends the shell."""
        self._begin_line()
        self.box.limit.reset()
        try:
            yield from self._run_line(line)
        except BoxLimitExceeded:
            if self._imitates_programs and self._is_in_endless_loop:
                yield BoxOutput("the loop goes on until its lease ends (simulated)\n", is_notice=True)
                yield BoxPause(None)
            self.box.status = 1
            yield BoxOutput("bash: stopped: a simulated box does not imitate so much at once\n", is_error=True)

    def _begin_line(self) -> None:
        self._nesting = self._commands = self._printed = self._loops = 0
        self._unchecked = 0  # commands around the present one whose failure `set -e` ignores
        self._is_in_endless_loop = False

    def _run_line(self, line: str) -> Iterator[BoxEvent]:
        self.box.spend(2 * len(line))
        try:
            commands = parse_command_line(line)
        except InvalidSyntax as error:
            self.box.status = MISUSED
            yield BoxOutput(f"bash: {error}\n", is_error=True)
        except UnsupportedSyntax as error:
            refusal = f"bash: `{error}' is not imitated by this simulated box"
            yield from self._run_unknown(" ".join(line.split()), refusal)
        else:
            yield from self._run_list(commands, BoxInput())

    def _run_list(self, commands: CommandList, source: BoxInput) -> Iterator[BoxEvent]:
        for number, pipeline in enumerate(commands):
            skipped = {"&&": self.box.status != 0, "||": self.box.status == 0}
            if skipped.get(pipeline.joined_by, False):
                continue
            is_last = number + 1 == len(commands) or commands[number + 1].joined_by == ";"
            if not is_last or pipeline.is_negated:
                yield from self._run_unchecked(self._run_pipeline(pipeline, source))
                continue
            yield from self._run_pipeline(pipeline, source)
            fails = self.box.status and self._options.exits_on_error and not self._unchecked
            if fails and _is_checked(pipeline.commands[-1]):
                raise ShellExited(self.box.status)

    def _run_unchecked(self, running: Iterator[BoxEvent]) -> Iterator[BoxEvent]:
        """Run a condition, whose failure is no error."""
        self._unchecked += 1
        try:
            yield from running
        finally:
            self._unchecked -= 1

    def _run_pipeline(self, pipeline: ChainedPipeline, source: BoxInput) -> Iterator[BoxEvent]:
        *before, last = pipeline.commands
        if before:
            yield from self._run_piped(pipeline.commands, source)
        else:
            yield from self._run_command(last, source)
        if pipeline.is_negated:
            self.box.status = int(self.box.status == 0)

    def _run_piped(self, commands: tuple[ShellCommand, ...], source: BoxInput) -> Iterator[BoxEvent]:
        failed = 0
        for command in commands:
            collected = list[str]()
            for event in self._run_apart(self._run_command(command, source), counts=False):
                if command is not commands[-1] and isinstance(event, BoxOutput) and event.is_piped:
                    collected.append(event.text)
                else:
                    yield event
            failed = self.box.status or failed
            source = BoxInput("".join(collected))
        if self._options.fails_in_pipes:
            self.box.status = failed

    def _run_apart(self, running: Iterator[BoxEvent], *, counts: bool = True) -> Iterator[BoxEvent]:
        """Run commands in a shell with a directory, variables and options of its own."""
        if self._nesting >= MAX_NESTING:
            raise BoxLimitExceeded
        box, kept = self.box, (self.box.directory, self.box.env, self._options)
        self._nesting += counts
        try:
            yield from running
        except ShellExited as exited:
            box.status = exited.status
        finally:
            self._nesting -= counts
            box.directory, box.env, options = kept
            self._set_options(options)

    def _substitute(self, commands: CommandList) -> Generator[BoxEvent, None, str]:
        collected = list[str]()
        for event in self._run_apart(self._run_list(commands, BoxInput())):
            if isinstance(event, BoxOutput) and event.is_piped:
                collected.append(event.text)
                self._count_printed(event)
            else:
                yield event
        return "".join(collected)

    def _run_command(self, command: ShellCommand, source: BoxInput) -> Iterator[BoxEvent]:
        self._count_command()
        try:
            if isinstance(command, SimpleCommand):
                yield from self._run_simple(command, source)
                return
            streams = yield from self._open_streams(command.redirections, source)
            for event in self._run_compound(command, streams.source):
                yield from self._print(event, streams)
        except BoxFileError as error:
            self.box.status = 1
            yield BoxOutput(f"bash: {error}\n", is_error=True)
        except ExpansionFailed as error:
            self.box.status = 1
            yield BoxOutput(f"bash: {error}\n", is_error=True)
            if self._imitates_programs:  # a terminal stays open
                raise ShellExited(1) from None

    def _run_compound(self, command: ShellCommand, source: BoxInput) -> Iterator[BoxEvent]:
        match command:
            case IfCommand():
                yield from self._run_if(command, source)
            case ForCommand():
                yield from self._run_for(command, source)
            case WhileCommand():
                yield from self._run_while(command, source)
            case GroupCommand(body, is_subshell):
                running = self._run_list(body, source)
                yield from self._run_apart(running) if is_subshell else running

    def _run_if(self, command: IfCommand, source: BoxInput) -> Iterator[BoxEvent]:
        for condition, body in command.branches:
            if condition:
                yield from self._run_unchecked(self._run_list(condition, source))
            if not condition or self.box.status == 0:
                yield from self._run_list(body, source)
                return
        self.box.status = 0

    def _run_for(self, command: ForCommand, source: BoxInput) -> Iterator[BoxEvent]:
        values = yield from self._expander.expand_words(command.words)
        self.box.status = 0
        for value in values:
            self._count_command()
            self.box.set_variables({command.name: value})
            goes_on = yield from self._run_body(command.body, source)
            if not goes_on:
                return

    def _run_while(self, command: WhileCommand, source: BoxInput) -> Iterator[BoxEvent]:
        status, goes_on = 0, True
        try:
            while goes_on:
                self._count_command()
                yield from self._run_unchecked(self._run_list(command.condition, source))
                if (self.box.status == 0) == command.is_until:
                    break
                goes_on = yield from self._run_body(command.body, source)
                status = self.box.status
        except BoxLimitExceeded:
            self._is_in_endless_loop = True
            raise
        self.box.status = status

    def _run_body(self, body: CommandList, source: BoxInput) -> Generator[BoxEvent, None, bool]:
        """Run the body of a loop once; return whether the loop goes on."""
        self._loops += 1
        try:
            yield from self._run_list(body, source)
        except LoopLeft as left:
            self.box.status = 0
            if left.levels > 1 and self._loops > 1:
                raise LoopLeft(left.levels - 1, continues=left.continues) from None
            return left.continues
        finally:
            self._loops -= 1
        return True

    def _run_simple(self, command: SimpleCommand, source: BoxInput) -> Iterator[BoxEvent]:
        box, before = self.box, self.box.status
        words = yield from self._expander.expand_words(command.words)
        values = {}
        if not words:
            box.status = 0  # or that of a substitution
        for name, word in command.assignments:
            values[name] = yield from self._expander.expand(word)
        status, box.status = box.status, before if words else box.status
        streams = yield from self._open_streams(command.redirections, source)
        if self._options.traces and words:
            yield BoxOutput(f"+ {shlex.join(words)}\n", is_error=True)
        if not words:
            box.set_variables(values)
            box.status = status
            return
        kept = box.env
        values |= _without_prefixes(words)[1]
        box.set_variables(values)
        try:
            for event in self._run_words(words, command.text, streams.source):
                yield from self._print(event, streams)
        finally:
            if values:  # they were set for this command only
                others = {name: value for name, value in box.env.items() if name not in values}
                box.env = others | {name: kept[name] for name in values if name in kept}

    def _open_streams(
        self, redirections: tuple[Redirection, ...], source: BoxInput
    ) -> Generator[BoxEvent, None, _Streams]:
        output, error = Destination(), Destination(is_error=True)
        for each in redirections:
            if copied := COPIED.fullmatch(each.operator):
                target = error if copied[2] == "2" else output
                output, error = (output, target) if copied[1] == "2" else (target, error)
                continue
            name = yield from self._expander.expand(each.target)
            if each.operator == "<<<":
                source = BoxInput(f"{name}\n")
            elif each.operator == "<":
                source = BoxInput(self._at_path(name, self.box.files.read))
            else:
                opened = self._open_file(name, appends=each.operator.endswith(">>"))
                output = output if each.operator.startswith("2") else opened
                error = opened if each.operator[0] in "2&" else error
        return _Streams(source, output, error)

    def _open_file(self, name: str, *, appends: bool) -> Destination:
        if name in STREAM_PATHS:
            return Destination(is_error=STREAM_PATHS[name])
        self._at_path(name, lambda path: self.box.files.write(path, "", append=appends))
        return Destination(self.box.resolve(name))

    def _at_path(self, name: str, act: Callable[[str], Result]) -> Result:
        try:
            return act(self.box.resolve(name))
        except BoxFileError as error:
            raise BoxFileError(f"{name}: {error}") from None

    def _print(self, event: BoxEvent, streams: _Streams) -> Iterator[BoxEvent]:
        if isinstance(event, BoxPause) or event.is_notice:
            yield event
            return
        self._count_printed(event)
        to = streams.error if event.is_error else streams.output
        if not to.path:
            yield BoxOutput(event.text, to.is_error)
            return
        try:
            self.box.files.write(to.path, event.text, append=True)
        except BoxFileError as error:
            self.box.status = 1
            yield BoxOutput(f"bash: {to.path}: {error}\n", is_error=True)

    def _count_printed(self, event: BoxOutput) -> None:
        self._printed += len(event.text)
        if self._printed > MAX_OUTPUT:
            raise BoxLimitExceeded

    def _count_command(self) -> None:
        self._commands += 1
        if self._commands > MAX_COMMANDS:
            raise BoxLimitExceeded

    def _run_words(self, words: list[str], text: str, source: BoxInput) -> Iterator[BoxEvent]:
        words, _, replaces_shell = _without_prefixes(words)
        yield from self._run_program(words, text, source)
        if replaces_shell:
            raise ShellExited(self.box.status)

    def _run_program(self, words: list[str], text: str, source: BoxInput) -> Iterator[BoxEvent]:
        name, arguments = _program_name(words[0]), words[1:]
        program = available_programs(self.box.facts).get(name)
        options, line = parse_shell_call(arguments) if name in SHELLS else (self._options, None)
        if line is not None:
            yield from self._run_apart(self._run_nested(line, options))
        elif name in PYTHONS and arguments in VERSION_OPTIONS:
            self.box.status = 0
            yield BoxOutput("Python 3.12 (simulated, not installed)\n")
        elif name in BUILTINS:
            yield from self._report(BUILTINS[name](self, arguments, source))
        elif program is None and name in NEEDS_GPU:
            self.box.status = NOT_FOUND
            yield BoxOutput(f"bash: {words[0]}: command not found\n", is_error=True)
        elif program is None:
            refusal = f"bash: {words[0]}: command not found (this box is simulated; type help for what it knows)"
            yield from self._run_unknown(text, refusal)
        else:
            self.box.spend(len(source.text))
            yield from self._report(program(ProgramCall(self.box, tuple(arguments), source.text)))

    def _report(self, result: ProgramResult) -> Iterator[BoxEvent]:
        if result.runs_on:
            yield BoxPause(None)
        elif result.wait_s:
            yield BoxPause(result.wait_s)
        if result.error:
            yield BoxOutput(result.error, is_error=True)
        if result.text:
            yield BoxOutput(result.text)
        self.box.status = result.status
        if result.exits:
            raise ShellExited(result.status)

    def _run_nested(self, line: str, options: ShellOptions) -> Iterator[BoxEvent]:
        self._set_options(options)
        yield from self._run_line(line)

    def _run_unknown(self, text: str, refusal: str) -> Iterator[BoxEvent]:
        if self._imitates_programs:
            yield BoxOutput(f"{text}: simulated, not really run\n", is_notice=True)
            yield BoxPause(None)
        else:
            self.box.status = NOT_FOUND
            yield BoxOutput(f"{refusal}\n", is_error=True)

    def _set_options(self, options: ShellOptions) -> None:
        self._options = options
        self._expander.refuses_unset = options.refuses_unset

    def set_options(self, arguments: list[str], _source: BoxInput) -> ProgramResult:
        """Run `set`."""
        try:
            self._set_options(parse_set(arguments, self._options))
        except InvalidOption as error:
            return ProgramResult(error=f"bash: set: {error}\n", status=MISUSED)
        return ProgramResult()

    def read_line(self, arguments: list[str], source: BoxInput) -> ProgramResult:
        """Run `read`: take a line of the input and put its words into variables."""
        names = [each for each in arguments if not each.startswith("-")] or ["REPLY"]
        if not all(NAME.fullmatch(each) for each in names):
            return ProgramResult(error=f"bash: read: `{names[0]}': not a valid identifier\n", status=1)
        line = source.take_line()
        parts = (line or "").split(maxsplit=len(names) - 1) if len(names) > 1 else [(line or "").strip()]
        self.box.spend(len(source.text))
        self.box.set_variables(dict(zip(names, parts + [""] * (len(names) - len(parts)), strict=True)))
        return ProgramResult(status=int(line is None))

    def leave_loop(self, arguments: list[str], *, continues: bool) -> ProgramResult:
        """Run `break` or `continue`."""
        if self._loops:
            levels = arguments[0] if arguments else "1"
            raise LoopLeft(int(levels) if levels.isdecimal() and len(levels) < 4 else 1, continues=continues)
        return ProgramResult()


BUILTINS: dict[str, Callable[[BoxShell, list[str], BoxInput], ProgramResult]] = {
    "set": BoxShell.set_options,
    "read": BoxShell.read_line,
    "break": lambda shell, arguments, _: shell.leave_loop(arguments, continues=False),
    "continue": lambda shell, arguments, _: shell.leave_loop(arguments, continues=True),
}


def _is_checked(command: ShellCommand) -> bool:
    """Return whether `set -e` checks this command's own status."""
    return isinstance(command, SimpleCommand) or (isinstance(command, GroupCommand) and command.is_subshell)


def _program_name(word: str) -> str:
    """Return the name of a program; empty for a file of the user's."""
    folder, name = posixpath.split(word)
    return name if folder in PROGRAM_FOLDERS else ""


def _without_prefixes(words: list[str]) -> tuple[list[str], dict[str, str], bool]:
    """Return what a prefix such as `exec` or `env` runs, and how."""
    replaces_shell, at, assigned = False, 0, dict[str, str]()
    while at + 1 < len(words):
        name, following = words[at], words[at + 1]
        if name == "command" and following == "-v":
            return ["which", *words[at + 2 :]], assigned, replaces_shell
        if name in PREFIXES and not following.startswith("-"):
            replaces_shell, at = replaces_shell or name == "exec", at + 1
            continue
        behind = next((place for place in range(at + 1, len(words)) if "=" not in words[place]), None)
        if name != "env" or behind is None or words[behind].startswith("-"):
            break
        assigned |= dict(word.split("=", 1) for word in words[at + 1 : behind])
        at = behind
    return words[at:], assigned, replaces_shell
