"""Parser of the shell command lines that a simulated box understands.

Lists with `;`, `&&` and `||`, pipelines, quotes, variables, assignments and redirections. Loops,
conditions, substitutions and background jobs are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_LINE = 4000
OPERATOR = re.compile(r"\|\||&&|2>&1|2>>|2>|>>|[;|<>&()\n]")
PARAMETER = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*|[?$#])\}|([A-Za-z_][A-Za-z0-9_]*|[?$#]))", re.ASCII)
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
REDIRECTIONS = {">", ">>", "<", "2>", "2>>", "2>&1"}
KEYWORDS = {"for", "while", "until", "if", "case", "select", "function", "time", "coproc", "{", "}", "[[", "!"}


class UnsupportedSyntax(Exception):
    """The line uses syntax that the box does not imitate; names it."""


class InvalidSyntax(Exception):
    """The line is not valid for any shell."""


@dataclass(frozen=True, slots=True)
class WordSegment:
    """Characters of a word that are quoted alike."""

    text: str
    expands: bool = True  # variables are replaced in it
    quoted: bool = False


ShellWord = tuple[WordSegment, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a stream of a command goes or comes from."""

    operator: str
    target: ShellWord = ()


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command with its assignments, words and redirections."""

    assignments: tuple[tuple[str, ShellWord], ...]
    words: tuple[ShellWord, ...]
    redirections: tuple[Redirection, ...]
    text: str  # as typed


@dataclass(frozen=True, slots=True)
class ChainedPipeline:
    """Commands joined by pipes, and how they are joined to what stands before."""

    joined_by: str  # ";", "&&" or "||"
    commands: tuple[SimpleCommand, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str  # of the operator, or as typed
    word: ShellWord | None
    begin: int
    end: int


def parse_command_line(line: str) -> tuple[ChainedPipeline, ...]:
    """Return the pipelines of a line; raises UnsupportedSyntax or InvalidSyntax."""
    if len(line) > MAX_LINE:
        raise InvalidSyntax(f"line longer than {MAX_LINE} characters")
    pipelines: list[ChainedPipeline] = []
    joined_by, commands, tokens = ";", list[SimpleCommand](), list[_Token]()
    for token in (*_tokens(line), _Token("\n", None, len(line), len(line))):
        if token.word is not None or token.text in REDIRECTIONS:
            tokens.append(token)
            continue
        if token.text in {"&", "(", ")"}:
            raise UnsupportedSyntax(token.text)
        separates = token.text in {";", "\n"}
        if tokens:
            commands.append(_command(tokens, line))
        elif commands or joined_by != ";" or not separates:
            raise InvalidSyntax(f"syntax error near unexpected token `{token.text.strip() or 'newline'}'")
        tokens = []
        if token.text != "|":
            if commands:
                pipelines.append(ChainedPipeline(joined_by, tuple(commands)))
            joined_by, commands = ";" if separates else token.text, []
    return tuple(pipelines)


def _command(tokens: list[_Token], line: str) -> SimpleCommand:
    assignments: list[tuple[str, ShellWord]] = []
    words: list[ShellWord] = []
    redirections: list[Redirection] = []
    rest = iter(tokens)
    for token in rest:
        if token.word is None:
            redirections.append(_redirection(token.text, rest))
        elif not words and (name := _assigned_name(token.word)):
            first = token.word[0]
            value = WordSegment(first.text[len(name) + 1 :], first.expands, first.quoted)
            assignments.append((name, (value, *token.word[1:])))
        elif not words and token.text in KEYWORDS:
            raise UnsupportedSyntax(token.text)
        else:
            words.append(token.word)
    text = line[tokens[0].begin : tokens[-1].end]
    return SimpleCommand(tuple(assignments), tuple(words), tuple(redirections), text)


def _redirection(operator: str, rest: Iterator[_Token]) -> Redirection:
    if operator == "2>&1":
        return Redirection(operator)
    target = next(rest, None)
    if target is None or target.word is None:
        raise InvalidSyntax("syntax error near unexpected token `newline'")
    return Redirection(operator, target.word)


def _assigned_name(word: ShellWord) -> str:
    found = None if word[0].quoted else ASSIGNMENT.match(word[0].text)
    return found[1] if found else ""


def _tokens(line: str) -> Iterator[_Token]:
    at = 0
    while at < len(line):
        character = line[at]
        if character in " \t\r":
            at += 1
        elif character == "#":
            newline = line.find("\n", at)
            at = len(line) if newline < 0 else newline
        elif operator := OPERATOR.match(line, at):
            if line.startswith("<<", at):
                raise UnsupportedSyntax("<<")
            yield _Token(operator[0], None, at, operator.end())
            at = operator.end()
        else:
            word, end = _word(line, at)
            yield _Token(line[at:end], word, at, end)
            at = end


def _word(line: str, at: int) -> tuple[ShellWord, int]:
    segments: list[WordSegment] = []
    plain: list[str] = []

    def close_plain() -> None:
        if plain:
            segments.append(WordSegment("".join(plain)))
            plain.clear()

    while at < len(line) and line[at] not in " \t\r\n;|<>&()":
        character = line[at]
        if character == "`" or line.startswith(("$(", "$'", '$"'), at):
            raise UnsupportedSyntax("`" if character == "`" else line[at : at + 2])
        if character in "'\"":
            close_plain()
            quoted, at = _quoted(line, at)
            segments.extend(quoted)
        elif character == "\\":
            close_plain()
            if line[at + 1 : at + 2] != "\n":  # a line continued on the next
                segments.append(WordSegment(line[at + 1 : at + 2], expands=False, quoted=True))
            at += 2
        else:
            if line.startswith("${", at) and not PARAMETER.match(line, at):
                raise UnsupportedSyntax("${")
            plain.append(character)
            at += 1
    close_plain()
    return tuple(segments) or (WordSegment("", quoted=True),), min(at, len(line))


def _quoted(line: str, at: int) -> tuple[list[WordSegment], int]:
    """Return what stands between quotes, and the position after them."""
    quote, at = line[at], at + 1
    segments = [WordSegment("", expands=quote == '"', quoted=True)]
    while at < len(line):
        character, literal = line[at], False
        if character == quote:
            return segments, at + 1
        if quote == '"':
            if character == "`" or line.startswith("$(", at):
                raise UnsupportedSyntax("`" if character == "`" else "$(")
            if character == "\\" and line[at + 1 : at + 2] in tuple('"\\`$\n'):
                at += 1
                character, literal = line[at], True
        expands = quote == '"' and not literal
        if segments[-1].expands == expands:
            segments[-1] = WordSegment(segments[-1].text + character, expands, quoted=True)
        else:
            segments.append(WordSegment(character, expands, quoted=True))
        at += 1
    raise InvalidSyntax(f"unexpected EOF while looking for matching `{quote}'")
