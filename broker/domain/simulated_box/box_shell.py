"""Shell of a simulated box: runs command lines by imitation.

A running line is an iterator of outputs and pauses. Its caller decides how to wait, and may abandon it.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from broker.domain.simulated_box.box_files import BoxFileError
from broker.domain.simulated_box.box_programs import NEEDS_GPU, ProgramCall, ProgramResult, available_programs
from broker.domain.simulated_box.box_state import BoxLimitExceeded, BoxState
from broker.domain.simulated_box.shell_syntax import (
    PARAMETER,
    ChainedPipeline,
    InvalidSyntax,
    ShellWord,
    SimpleCommand,
    UnsupportedSyntax,
    parse_command_line,
)

MAX_COMMANDS = 500  # of one line
MAX_OUTPUT = 256 * 1024  # characters of one line
MAX_WORDS = 64 * 1024  # characters of the words of a command, with variables replaced
MAX_NESTING = 4  # of sh -c
NOT_FOUND, MISUSED = 127, 2
SHELLS, SHELL_OPTIONS = {"sh", "bash"}, {"-c", "-ec", "-lc"}
PYTHONS, VERSION_OPTIONS = {"python", "python3"}, (["--version"], ["-V"])
PROGRAM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/usr/sbin", "/sbin"}


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """Text that a command prints."""

    text: str
    is_error: bool = False
    is_notice: bool = False  # said by the box, whatever the command's output is redirected to

    @property
    def is_piped(self) -> bool:
        """Return whether the next command of a pipeline reads it."""
        return not self.is_error and not self.is_notice


@dataclass(frozen=True, slots=True)
class BoxPause:
    """Time that passes; None: until the box ends."""

    seconds: float | None


BoxEvent = BoxOutput | BoxPause


@dataclass(frozen=True, slots=True)
class _Streams:
    """Where a command reads from and prints to; an empty path is the terminal."""

    piped: str
    output_path: str = ""
    error_path: str = ""
    is_merged: bool = False  # errors go where outputs go


class ShellExited(Exception):
    """The shell ended by `exit`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class BoxShell:
    """A shell in a box."""

    def __init__(self, box: BoxState, *, imitates_programs: bool) -> None:
        self.box = box
        self._imitates_programs = imitates_programs  # unknown programs run on instead of being refused
        self._nesting = self._commands = self._printed = 0

    def run(self, line: str) -> Iterator[BoxEvent]:
        """Run a command line; raises ShellExited when it ends the shell."""
        self._nesting = self._commands = self._printed = 0
        try:
            yield from self._run_line(line)
        except BoxLimitExceeded:
            self.box.status = 1
            yield BoxOutput("bash: stopped: a simulated box does not imitate so much at once\n", is_error=True)

    def _run_line(self, line: str) -> Iterator[BoxEvent]:
        try:
            pipelines = parse_command_line(line)
        except InvalidSyntax as error:
            self.box.status = MISUSED
            yield BoxOutput(f"bash: {error}\n", is_error=True)
        except UnsupportedSyntax as error:
            refusal = f"bash: `{error}' is not imitated by this simulated box"
            yield from self._run_unknown(" ".join(line.split()), refusal)
        else:
            for pipeline in pipelines:
                skipped = {"&&": self.box.status != 0, "||": self.box.status == 0}
                if not skipped.get(pipeline.joined_by, False):
                    yield from self._run_pipeline(pipeline)

    def _run_pipeline(self, pipeline: ChainedPipeline) -> Iterator[BoxEvent]:
        *before, last = pipeline.commands
        if not before:
            yield from self._run_command(last, "")
            return
        piped = ""
        for command in pipeline.commands:
            collected = list[str]()
            try:
                for event in self._run_command(command, piped):
                    if command is not last and isinstance(event, BoxOutput) and event.is_piped:
                        collected.append(event.text)
                    else:
                        yield event
            except ShellExited as exited:  # each command of a pipeline has a shell of its own
                self.box.status = exited.status
            piped = "".join(collected)

    def _run_command(self, command: SimpleCommand, piped: str) -> Iterator[BoxEvent]:
        self._commands += 1
        if self._commands > MAX_COMMANDS:
            raise BoxLimitExceeded
        box = self.box
        words = self._expand_words(command.words)
        values = {name: self._expand(word) for name, word in command.assignments}
        try:
            streams = self._open_streams(command, piped)
        except BoxFileError as error:
            box.status = 1
            yield BoxOutput(f"bash: {error}\n", is_error=True)
            return
        if not words:
            box.set_variables(values)
            box.status = 0
            return
        kept = box.env
        box.set_variables(values)
        try:
            for event in self._run_words(words, command.text, streams.piped):
                yield from self._print(event, streams) if isinstance(event, BoxOutput) else (event,)
        finally:
            if values:
                box.env = kept

    def _open_streams(self, command: SimpleCommand, piped: str) -> _Streams:
        paths, is_merged = {">": "", "2>": ""}, False
        for each in command.redirections:
            if each.operator == "2>&1":
                is_merged = True
                continue
            name = self._expand(each.target)
            path = self.box.resolve(name)
            try:
                if each.operator == "<":
                    piped = self.box.files.read(path)
                else:
                    self.box.files.write(path, "", append=each.operator.endswith(">>"))
                    paths[each.operator.replace(">>", ">")] = path
            except BoxFileError as error:
                raise BoxFileError(f"{name}: {error}") from None
        return _Streams(piped, paths[">"], paths["2>"], is_merged)

    def _print(self, event: BoxOutput, streams: _Streams) -> Iterator[BoxEvent]:
        is_error = event.is_error and not streams.is_merged
        self._printed += len(event.text)
        if self._printed > MAX_OUTPUT:
            raise BoxLimitExceeded
        path = streams.error_path if is_error else streams.output_path
        if not path or event.is_notice:
            yield BoxOutput(event.text, is_error, event.is_notice)
            return
        try:
            self.box.files.write(path, event.text, append=True)
        except BoxFileError as error:
            self.box.status = 1
            yield BoxOutput(f"bash: {path}: {error}\n", is_error=True)

    def _run_words(self, words: list[str], text: str, piped: str) -> Iterator[BoxEvent]:
        folder, name = posixpath.split(words[0])
        if folder not in PROGRAM_FOLDERS:
            name = ""
        program = available_programs(self.box.facts).get(name)
        if name in SHELLS and len(words) >= 3 and words[1] in SHELL_OPTIONS:
            yield from self._run_nested(words[2])
        elif name in PYTHONS and words[1:] in VERSION_OPTIONS:
            self.box.status = 0
            yield BoxOutput("Python 3.12 (simulated, not installed)\n")
        elif program is None and name in NEEDS_GPU:
            self.box.status = NOT_FOUND
            yield BoxOutput(f"bash: {words[0]}: command not found\n", is_error=True)
        elif program is None:
            refusal = f"bash: {words[0]}: command not found (this box is simulated; type help for what it knows)"
            yield from self._run_unknown(text, refusal)
        else:
            yield from self._report(program(ProgramCall(self.box, tuple(words[1:]), piped)))

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

    def _run_nested(self, line: str) -> Iterator[BoxEvent]:
        """Run a line in a shell with a directory and variables of its own."""
        if self._nesting >= MAX_NESTING:
            raise BoxLimitExceeded
        box = self.box
        kept = (box.directory, box.env)
        self._nesting += 1
        try:
            yield from self._run_line(line)
        except ShellExited as exited:
            box.status = exited.status
        finally:
            self._nesting -= 1
            box.directory, box.env = kept

    def _run_unknown(self, text: str, refusal: str) -> Iterator[BoxEvent]:
        if self._imitates_programs:
            yield BoxOutput(f"{text}: simulated, not really run\n", is_notice=True)
            yield BoxPause(None)
        else:
            self.box.status = NOT_FOUND
            yield BoxOutput(f"{refusal}\n", is_error=True)

    def _expand_words(self, words: tuple[ShellWord, ...]) -> list[str]:
        expanded: list[str] = []
        for word in words:
            text = self._expand(word)
            is_split = any("$" in each.text for each in word) and not any(each.quoted for each in word)
            expanded += text.split() if is_split else [text]
            if sum(map(len, expanded)) > MAX_WORDS:
                raise BoxLimitExceeded
        return expanded

    def _expand(self, word: ShellWord) -> str:
        text = ""
        for number, segment in enumerate(word):
            added = self._replace_parameters(segment.text) if segment.expands else segment.text
            if number == 0 and not segment.quoted and (added == "~" or added.startswith("~/")):
                added = self.box.env.get("HOME", "") + added[1:]
            text += added
            if len(text) > MAX_WORDS:
                raise BoxLimitExceeded
        return text

    def _replace_parameters(self, text: str) -> str:
        pieces, at, length = list[str](), 0, 0
        for found in PARAMETER.finditer(text):
            value = self._parameter(found[1] or found[2])
            pieces += [text[at : found.start()], value]
            at, length = found.end(), length + len(value)
            if length > MAX_WORDS:
                raise BoxLimitExceeded
        return "".join([*pieces, text[at:]])

    def _parameter(self, name: str) -> str:
        special = {"?": str(self.box.status), "$": "1", "#": "0", "PWD": self.box.directory}
        return special[name] if name in special else self.box.env.get(name, "")
