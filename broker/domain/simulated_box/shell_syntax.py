"""Parser of the shell command lines that a simulated box understands.

Lists with `;`, `&&` and `||`, pipelines, `if`, `for`, `while`, `until`, groups, quotes, variables, substitutions and
redirections. Functions, `case`, here-documents and background jobs are refused. Each character is read once.
"""

import re
from dataclasses import dataclass

MAX_LINE = 4000
MAX_DEPTH = 8  # of commands within commands
OPERATOR = re.compile(r"\|\||&&|;;|<<<|<<|&>>|&>|[12]?>&[12]|[<>]\(|[12]?[<>]&|[12]?>>|[12]?>|[<;|&()\n]")
PARAMETER = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*|[?$#@*!0-9])(?::?-(?P<default>[^}$`\"'\\]*))?\}"
    r"|(?P<plain>[A-Za-z_][A-Za-z0-9_]*|[?$#@*!0-9]))",
    re.ASCII,
)
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
COPIED = re.compile(r"([12]?)>&([12])")
REDIRECTION = re.compile(r"<|<<<|&>>?|[12]?>{1,2}|[12]?>&[12]")
REFUSED_WORDS = {"case", "select", "function", "coproc"}
CLOSING_WORDS = {"then", "elif", "else", "fi", "do", "done", "}"}
OPEN_TEST, CLOSED_TEST = "[[", "]]"
PATTERN = re.compile(r"[*?\[]")


class UnsupportedSyntax(Exception):
    """The line uses syntax that the box does not imitate; names it."""


class InvalidSyntax(Exception):
    """The line is not valid for any shell."""


@dataclass(frozen=True, slots=True)
class WordSegment:
    """Characters of a word that are quoted alike, or a substitution."""

    text: str
    expands: bool = True  # variables are replaced in it
    quoted: bool = False
    commands: "CommandList | None" = None  # of $(…)
    is_arithmetic: bool = False  # of $((…))

    @property
    def is_replaced(self) -> bool:
        """Return whether its text comes from elsewhere."""
        return self.commands is not None or self.is_arithmetic or (self.expands and "$" in self.text)


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
class IfCommand:
    """Conditions with the commands behind them; the last condition may be empty."""

    branches: tuple[tuple["CommandList", "CommandList"], ...]
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class ForCommand:
    """Commands repeated for each word."""

    name: str
    words: tuple[ShellWord, ...]
    body: "CommandList"
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class WhileCommand:
    """Commands repeated while a condition holds, or until it does."""

    condition: "CommandList"
    body: "CommandList"
    is_until: bool
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupCommand:
    """Commands in braces, or in parentheses as a shell of their own."""

    body: "CommandList"
    is_subshell: bool
    redirections: tuple[Redirection, ...] = ()


ShellCommand = SimpleCommand | IfCommand | ForCommand | WhileCommand | GroupCommand


@dataclass(frozen=True, slots=True)
class ChainedPipeline:
    """Commands joined by pipes, and how they are joined to what stands before."""

    joined_by: str  # ";", "&&" or "||"
    commands: tuple[ShellCommand, ...]
    is_negated: bool = False


CommandList = tuple[ChainedPipeline, ...]


def parse_command_line(line: str) -> CommandList:
    """Return the pipelines of a line; raises UnsupportedSyntax or InvalidSyntax."""
    if len(line) > MAX_LINE:
        raise InvalidSyntax(f"line longer than {MAX_LINE} characters")
    parser = _Parser(line)
    found = parser.parse_list(frozenset())
    if parser.peek() is not None:
        raise parser.unexpected()
    return found


@dataclass(frozen=True, slots=True)
class _Token:
    text: str  # of the operator, or as typed
    word: ShellWord | None
    begin: int
    end: int


class _Parser:
    """Reads a line from left to right."""

    def __init__(self, line: str) -> None:
        self._line, self._at, self._depth, self._taken_end = line, 0, 0, 0
        self._next: _Token | None = None

    def peek(self) -> _Token | None:
        """Return the next token without taking it; None at the end."""
        if self._next is None:
            self._next = self._read_token()
        return self._next

    def unexpected(self) -> InvalidSyntax:
        """Return the error about the next token."""
        token = self.peek()
        text = token.text.strip() if token else ""
        return InvalidSyntax(f"syntax error near unexpected token `{text or 'newline'}'")

    def parse_list(self, until: frozenset[str]) -> CommandList:
        """Return the pipelines before a closing word or parenthesis, which is not taken."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnsupportedSyntax("so many nested commands")
        pipelines: list[ChainedPipeline] = []
        joined_by, is_open = ";", False  # open: something must follow
        while True:
            self._skip_newlines()
            token = self.peek()
            if not is_open and (token is None or token.text in until):
                break
            pipelines.append(self._parse_pipeline(joined_by))
            token = self.peek()
            is_open = token is not None and token.text in {"&&", "||"}
            joined_by = token.text if token is not None and is_open else ";"
            if token is not None and (is_open or token.text in {";", "\n"}):
                self._take()
            elif token is not None and token.text not in until:
                raise self._refusal(token)
        self._depth -= 1
        return tuple(pipelines)

    def _parse_pipeline(self, joined_by: str) -> ChainedPipeline:
        is_negated = False
        while self._is_word("!"):
            self._take()
            is_negated = not is_negated
        commands = [self._parse_command()]
        while self._is_operator("|"):
            self._take()
            self._skip_newlines()
            commands.append(self._parse_command())
        return ChainedPipeline(joined_by, tuple(commands), is_negated)

    def _parse_command(self) -> ShellCommand:
        token = self.peek()
        if token is None:
            raise self.unexpected()
        if token.text in REFUSED_WORDS:
            raise UnsupportedSyntax(token.text)
        if token.text == "(" and self._line.startswith("((", token.begin):
            raise UnsupportedSyntax("((")
        if token.word is not None and token.text in CLOSING_WORDS:
            raise self.unexpected()
        match token.text:
            case "if":
                return self._parse_if()
            case "for":
                return self._parse_for()
            case "while" | "until":
                return self._parse_while()
            case "{":
                return GroupCommand(self._parse_body("{", "}"), False, self._parse_redirections())
            case "(":
                return GroupCommand(self._parse_body("(", ")"), True, self._parse_redirections())
            case _:
                return self._parse_simple()

    def _parse_if(self) -> IfCommand:
        branches: list[tuple[CommandList, CommandList]] = []
        opening = self._take().text
        while opening in {"if", "elif"}:
            condition = self._parse_until("then")
            self._take()
            branches.append((condition, self._parse_until("elif", "else", "fi")))
            opening = self._take().text
        if opening == "else":
            branches.append(((), self._parse_until("fi")))
            self._take()
        return IfCommand(tuple(branches), self._parse_redirections())

    def _parse_for(self) -> ForCommand:
        self._take()
        name = self.peek()
        if name is None or name.word is None or not NAME.fullmatch(name.text):
            raise UnsupportedSyntax("for")
        self._take()
        words: list[ShellWord] = []
        if self._is_word("in"):
            self._take()
            while (token := self.peek()) is not None and token.word is not None:
                words.append(token.word)
                self._take()
        self._skip_separators()
        return ForCommand(name.text, tuple(words), self._parse_body("do", "done"), self._parse_redirections())

    def _parse_while(self) -> WhileCommand:
        is_until = self._take().text == "until"
        condition = self._parse_until("do")
        return WhileCommand(condition, self._parse_body("do", "done"), is_until, self._parse_redirections())

    def _parse_body(self, opening: str, closing: str) -> CommandList:
        """Return what stands between two words; takes both."""
        if (token := self.peek()) is None or token.text != opening:
            raise self.unexpected()
        self._take()
        body = self._parse_until(closing)
        self._take()
        return body

    def _parse_until(self, *closing: str) -> CommandList:
        body = self.parse_list(frozenset(closing))
        if not body or self.peek() is None:
            raise self.unexpected() if self.peek() else InvalidSyntax("syntax error: unexpected end of file")
        return body

    def _parse_simple(self) -> SimpleCommand:
        assignments: list[tuple[str, ShellWord]] = []
        words: list[ShellWord] = []
        redirections: list[Redirection] = []
        begin = end = self._begin()
        is_test = False
        while (token := self.peek()) is not None:
            if token.word is None:
                if not REDIRECTION.fullmatch(token.text) or is_test:
                    break
                redirections.append(self._parse_redirection())
            elif not words and (name := _assigned_name(token.word)):
                first = token.word[0]
                value = WordSegment(first.text[len(name) + 1 :], first.expands, first.quoted)
                assignments.append((name, (value, *token.word[1:])))
                self._take()
            else:
                is_test = is_test or (not words and token.text == OPEN_TEST)
                words.append(token.word)
                self._take()
            end = self._taken_end
        if is_test and not _is_plain_test(words):
            raise UnsupportedSyntax(OPEN_TEST)
        if begin == end:
            raise self._refusal(token) if token else self.unexpected()
        return SimpleCommand(tuple(assignments), tuple(words), tuple(redirections), self._line[begin:end])

    def _parse_redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while (token := self.peek()) is not None and token.word is None and REDIRECTION.fullmatch(token.text):
            found.append(self._parse_redirection())
        return tuple(found)

    def _parse_redirection(self) -> Redirection:
        operator = self._take().text
        if COPIED.fullmatch(operator):
            return Redirection(operator)
        target = self.peek()
        if target is None or target.word is None:
            raise self.unexpected()
        self._take()
        return Redirection(operator, target.word)

    def _refusal(self, token: _Token) -> Exception:
        is_refused = token.text in {"&", "(", "<<", "<(", ">("} or token.text.endswith("&")
        return UnsupportedSyntax(token.text) if is_refused else self.unexpected()

    def _is_word(self, text: str) -> bool:
        token = self.peek()
        return token is not None and token.word is not None and token.text == text

    def _is_operator(self, text: str) -> bool:
        token = self.peek()
        return token is not None and token.word is None and token.text == text

    def _skip_newlines(self) -> None:
        while self._is_operator("\n"):
            self._take()

    def _skip_separators(self) -> None:
        if self._is_operator(";"):
            self._take()
        self._skip_newlines()

    def _begin(self) -> int:
        token = self.peek()
        return token.begin if token else len(self._line)

    def _take(self) -> _Token:
        token = self.peek()
        if token is None:
            raise InvalidSyntax("syntax error: unexpected end of file")
        self._next, self._taken_end = None, token.end
        return token

    def _read_token(self) -> _Token | None:
        line = self._line
        while self._at < len(line):
            character, begin = line[self._at], self._at
            if character in " \t\r":
                self._at += 1
            elif line.startswith("\\\n", begin):
                self._at += 2
            elif character == "#":
                newline = line.find("\n", begin)
                self._at = len(line) if newline < 0 else newline
            elif operator := OPERATOR.match(line, begin):
                self._at = operator.end()
                return _Token(operator[0], None, begin, self._at)
            else:
                word = self._read_word()
                return _Token(line[begin : self._at], word, begin, self._at)
        return None

    def _read_word(self) -> ShellWord:
        line, segments, plain = self._line, list[WordSegment](), list[str]()

        def close_plain() -> None:
            if plain:
                segments.append(WordSegment("".join(plain)))
                plain.clear()

        while self._at < len(line) and line[self._at] not in " \t\r\n;|<>&()":
            character = line[self._at]
            if character == "`" or line.startswith(("$'", '$"'), self._at):
                raise UnsupportedSyntax("`" if character == "`" else line[self._at : self._at + 2])
            if line.startswith("$(", self._at):
                close_plain()
                segments.append(self._read_substitution(quoted=False))
            elif character in "'\"":
                close_plain()
                segments.extend(self._read_quoted())
            elif character == "\\":
                close_plain()
                if line[self._at + 1 : self._at + 2] != "\n":  # a line continued on the next
                    segments.append(WordSegment(line[self._at + 1 : self._at + 2], expands=False, quoted=True))
                self._at += 2
            else:
                plain.append(self._read_parameter() or character)
                self._at += 0 if len(plain[-1]) > 1 else 1
        self._at = min(self._at, len(line))
        close_plain()
        return tuple(segments) or (WordSegment("", quoted=True),)

    def _read_parameter(self) -> str:
        """Return a braced parameter and go behind it; empty for anything else."""
        if not self._line.startswith("${", self._at):
            return ""
        found = PARAMETER.match(self._line, self._at)
        if found is None:
            raise UnsupportedSyntax("${")
        self._at = found.end()
        return found[0]

    def _read_quoted(self) -> list[WordSegment]:
        line, quote = self._line, self._line[self._at]
        self._at += 1
        segments = [WordSegment("", expands=quote == '"', quoted=True)]
        plain: list[str] = []

        def close_plain(*, expands: bool) -> None:
            if plain:
                segments.append(WordSegment("".join(plain), expands, quoted=True))
                plain.clear()

        while self._at < len(line):
            character = line[self._at]
            if character == quote:
                close_plain(expands=quote == '"')
                self._at += 1
                return segments
            if quote == "'":
                plain.append(character)
                self._at += 1
            elif character == "`":
                raise UnsupportedSyntax("`")
            elif line.startswith("$(", self._at):
                close_plain(expands=True)
                segments.append(self._read_substitution(quoted=True))
            elif character == "\\" and line[self._at + 1 : self._at + 2] in tuple('"\\`$\n'):
                close_plain(expands=True)
                if line[self._at + 1] != "\n":
                    segments.append(WordSegment(line[self._at + 1], expands=False, quoted=True))
                self._at += 2
            else:
                plain.append(self._read_parameter() or character)
                self._at += 0 if len(plain[-1]) > 1 else 1
        raise InvalidSyntax(f"unexpected EOF while looking for matching `{quote}'")

    def _read_substitution(self, *, quoted: bool) -> WordSegment:
        """Return what stands in $(…) or $((…)), and go behind it."""
        if self._line.startswith("$((", self._at):
            end = self._line.find("))", self._at)
            text = self._line[self._at + 3 : end] if end > 0 else ""
            if not text.strip():
                raise UnsupportedSyntax("$((")
            self._at = end + 2
            while text.count("(") > text.count(")") and self._line.startswith(")", self._at):
                text, self._at = text + ")", self._at + 1
            return WordSegment(text, expands=True, quoted=quoted, is_arithmetic=True)
        begin = self._at
        self._at += 2
        commands = self.parse_list(frozenset({")"}))
        if not self._is_operator(")"):
            raise InvalidSyntax("unexpected EOF while looking for matching `)'")
        self._take()
        return WordSegment(self._line[begin : self._at], expands=False, quoted=quoted, commands=commands)


def _assigned_name(word: ShellWord) -> str:
    found = None if word[0].quoted or word[0].commands is not None else ASSIGNMENT.match(word[0].text)
    return found[1] if found else ""


def _is_plain_test(words: list[ShellWord]) -> bool:
    """Return whether a test in double brackets means the same in single ones."""
    texts = ["".join(each.text for each in word) for word in words]
    if texts[-1] != CLOSED_TEST or "=~" in texts:
        return False
    return not any(PATTERN.search(each.text) for word in words[1:-1] for each in word if not each.quoted)
