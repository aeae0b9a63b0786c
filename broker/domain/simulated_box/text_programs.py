"""Programs of a simulated box that make and change lines of text."""

import posixpath
import re
from collections.abc import Callable, Sequence
from itertools import groupby

from broker.domain.simulated_box.box_files import BoxFileError
from broker.domain.simulated_box.program_calls import Program, ProgramCall, ProgramResult, join_lines, read_all

MAX_NUMBERS = 10_000  # of one seq
WHOLE_NUMBER = re.compile(r"-?\d{1,12}", re.ASCII)
LEADING_NUMBER = re.compile(r"\s*(-?\d{1,18}(?:\.\d{1,18})?)", re.ASCII)
CONVERSION = re.compile(r"%(-?0?\d{0,2}(?:\.\d)?)([sdif])|%%", re.ASCII)
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\"}
ESCAPE = re.compile(r"\\[ntr\\]")
RANGE_OF_FIELDS = re.compile(r"([1-9]\d{0,3})?(-)?([1-9]\d{0,3})?", re.ASCII)
RANGE = re.compile(r"(\w)-(\w)", re.ASCII)


def _sort(call: ProgramCall) -> ProgramResult:
    text, error = read_all(call, "sort")
    flags, lines = call.flags, text.splitlines()
    if "u" in flags:
        lines = list(dict.fromkeys(lines))
    lines.sort(key=_number_at_start if "n" in flags else None, reverse="r" in flags)
    return ProgramResult(join_lines(lines), error, 2 * bool(error))


def _number_at_start(line: str) -> tuple[float, str]:
    found = LEADING_NUMBER.match(line)
    return (float(found[1]) if found else 0.0, line)


def _uniq(call: ProgramCall) -> ProgramResult:
    text, error = read_all(call, "uniq")
    runs = [(line, len(list(same))) for line, same in groupby(text.splitlines())]
    lines = [f"{count:>7} {line}" for line, count in runs] if "c" in call.flags else [line for line, _ in runs]
    return ProgramResult(join_lines(lines), error, int(bool(error)))


def _seq(call: ProgramCall) -> ProgramResult:
    if not 1 <= len(call.arguments) <= 3 or not all(WHOLE_NUMBER.fullmatch(each) for each in call.arguments):
        return ProgramResult(error="seq: a simulated box counts whole numbers: seq [FIRST [STEP]] LAST\n", status=1)
    numbers = [int(each) for each in call.arguments]
    first, step, last = {1: (1, 1, numbers[0]), 2: (numbers[0], 1, numbers[-1])}.get(len(numbers), tuple(numbers))
    if step == 0:
        return ProgramResult(error="seq: invalid Zero increment value: '0'\n", status=1)
    counted = range(first, last + (1 if step > 0 else -1), step)
    if len(counted) > MAX_NUMBERS:
        return ProgramResult(error=f"seq: a simulated box counts at most {MAX_NUMBERS:,} numbers\n", status=1)
    return ProgramResult(join_lines(map(str, counted)))


def _printf(call: ProgramCall) -> ProgramResult:
    if not call.arguments:
        return ProgramResult(error="bash: printf: usage: printf format [arguments]\n", status=2)
    text = ESCAPE.sub(lambda escape: ESCAPES[escape[0]], call.arguments[0])
    wanted = sum(found[0] != "%%" for found in CONVERSION.finditer(text))
    values, pieces = list(call.arguments[1:]), list[str]()
    while True:
        used, values = values[:wanted], values[wanted:]
        pieces.append(_format_once(text, used))
        if not values or not wanted:
            return ProgramResult("".join(pieces))


def _format_once(text: str, values: Sequence[str]) -> str:
    rest = iter(values)

    def convert(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        value = next(rest, "")
        if found[2] == "s":
            return f"%{found[1]}s" % value
        number = LEADING_NUMBER.match(value)
        amount = float(number[1]) if number else 0.0
        return f"%{found[1]}{found[2]}" % (amount if found[2] == "f" else int(amount))

    return CONVERSION.sub(convert, text)


def _tee(call: ProgramCall) -> ProgramResult:
    errors = []
    for path in call.operands:
        try:
            call.box.files.write(call.box.resolve(path), call.piped, append="a" in call.flags)
        except BoxFileError as error:
            errors.append(f"tee: {path}: {error}\n")
    return ProgramResult(call.piped, "".join(errors), int(bool(errors)))


def _tr(call: ProgramCall) -> ProgramResult:
    sets = [_characters(each) for each in call.operands]
    if "d" in call.flags and len(sets) == 1:
        return ProgramResult(call.piped.translate(str.maketrans("", "", sets[0])))
    if call.flags or len(sets) != 2 or not sets[0] or not sets[1]:
        return ProgramResult(error="tr: a simulated box knows only tr SET SET and tr -d SET\n", status=1)
    filled = sets[1] + sets[1][-1] * (len(sets[0]) - len(sets[1]))
    return ProgramResult(call.piped.translate(str.maketrans(sets[0], filled[: len(sets[0])])))


def _characters(text: str) -> str:
    """Return the characters of a set such as `a-z`."""
    text = ESCAPE.sub(lambda escape: ESCAPES[escape[0]], text)
    return RANGE.sub(lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), text)


def _cut(call: ProgramCall) -> ProgramResult:
    arguments, options, files = list(call.arguments), {"d": "\t"}, list[str]()
    while arguments:
        word = arguments.pop(0)
        if word[:2] in {"-d", "-f", "-c"}:
            options[word[1]] = word[2:] or (arguments.pop(0) if arguments else "")
        else:
            files.append(word)
    ranges = [RANGE_OF_FIELDS.fullmatch(each) for each in options.get("c", options.get("f", "")).split(",")]
    chosen = [slice(int(each[1] or 1) - 1, _last_field(each)) for each in ranges if each and each[0] not in ("", "-")]
    if len(chosen) != len(ranges) or len(options["d"]) != 1 or ("c" in options) == ("f" in options):
        return ProgramResult(
            error="cut: a simulated box knows only -d CHARACTER -f FIELDS and -c CHARACTERS\n", status=1
        )
    text, error = read_all(ProgramCall(call.box, tuple(files), call.piped), "cut")
    delimiter = "" if "c" in options else options["d"]
    lines = [_cut_line(line, delimiter, chosen) for line in text.splitlines()]
    return ProgramResult(join_lines(lines), error, int(bool(error)))


def _last_field(found: re.Match[str]) -> int | None:
    return int(found[1]) if not found[2] else int(found[3]) if found[3] else None


def _cut_line(line: str, delimiter: str, chosen: Sequence[slice]) -> str:
    if delimiter and delimiter not in line:
        return line
    parts = line.split(delimiter) if delimiter else list(line)
    return delimiter.join(part for place in chosen for part in parts[place])


def _on_path(convert: Callable[[str], str]) -> Program:
    def run(call: ProgramCall) -> ProgramResult:
        if not call.operands:
            return ProgramResult(error="missing operand\n", status=1)
        name = convert(call.operands[0].rstrip("/") or "/")
        return ProgramResult(f"{name.removesuffix(call.operands[1]) if call.operands[1:] else name}\n")

    return run


def _copy(call: ProgramCall) -> ProgramResult:
    return _transfer(call, "cp", removes=False)


def _move(call: ProgramCall) -> ProgramResult:
    return _transfer(call, "mv", removes=True)


def _transfer(call: ProgramCall, name: str, *, removes: bool) -> ProgramResult:
    """Copy or move a file; directories are not copied."""
    if len(call.operands) != 2:
        return ProgramResult(error=f"{name}: a simulated box knows only {name} FILE TARGET\n", status=1)
    files, (source, target) = call.box.files, map(call.box.resolve, call.operands)
    if files.is_directory(target):
        target = posixpath.join(target, posixpath.basename(source))
    try:
        text = files.read(source)
        if source != target:
            files.write(target, text)
            if removes:
                files.remove(source)
    except BoxFileError as error:
        return ProgramResult(error=f"{name}: {call.operands[0]}: {error}\n", status=1)
    return ProgramResult()


TEXT_PROGRAMS: dict[str, Program] = {
    "basename": _on_path(posixpath.basename),
    "cp": _copy,
    "cut": _cut,
    "dirname": _on_path(lambda path: posixpath.dirname(path) or "."),
    "mv": _move,
    "printf": _printf,
    "seq": _seq,
    "sort": _sort,
    "tee": _tee,
    "tr": _tr,
    "uniq": _uniq,
}
