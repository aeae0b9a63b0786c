"""Programs `test` and `[` of a simulated box."""

from broker.domain.simulated_box.box_files import BoxFileError
from broker.domain.simulated_box.box_state import BoxState
from broker.domain.simulated_box.program_calls import EXIT_MISUSED, Program, ProgramCall, ProgramResult
from broker.domain.simulated_box.shell_arithmetic import NUMBER

COMPARISONS = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


class InvalidTest(Exception):
    """The arguments are no condition."""


def _test(call: ProgramCall) -> ProgramResult:
    return _result("test", call.box, call.arguments)


def _bracket(call: ProgramCall) -> ProgramResult:
    if call.arguments[-1:] != ("]",):
        return ProgramResult(error="bash: [: missing `]'\n", status=EXIT_MISUSED)
    return _result("[", call.box, call.arguments[:-1])


def _double_bracket(call: ProgramCall) -> ProgramResult:
    return _result("[[", call.box, call.arguments[:-1])  # the parser has seen that it is closed


def _result(name: str, box: BoxState, arguments: tuple[str, ...]) -> ProgramResult:
    try:
        return ProgramResult(status=int(not _holds(box, arguments)))
    except InvalidTest as error:
        return ProgramResult(error=f"bash: {name}: {error}\n", status=EXIT_MISUSED)


def _holds(box: BoxState, arguments: tuple[str, ...]) -> bool:
    """Return whether a condition of `test` or `[` holds."""
    for alternative in _split(arguments, "-o"):
        if all(_holds_simple(box, condition) for condition in _split(alternative, "-a")):
            return True
    return False


def _split(arguments: tuple[str, ...], operator: str) -> list[tuple[str, ...]]:
    parts: list[list[str]] = [[]]
    for place, word in enumerate(arguments):
        if word == operator and parts[-1] and place + 1 < len(arguments):
            parts.append([])
        else:
            parts[-1].append(word)
    return [tuple(each) for each in parts]


def _holds_simple(box: BoxState, words: tuple[str, ...]) -> bool:
    negations = 0
    while len(words) > 1 and words[0] == "!":
        words, negations = words[1:], negations + 1
    match words:
        case ():
            holds = False
        case (word,):
            holds = bool(word)
        case (operator, operand):
            holds = _holds_for(box, operator, operand)
        case (left, operator, right):
            holds = _compare(left, operator, right)
        case _:
            raise InvalidTest("too many arguments")
    return holds != bool(negations % 2)


def _holds_for(box: BoxState, operator: str, operand: str) -> bool:
    path = box.resolve(operand)
    match operator:
        case "-n" | "-z":
            return bool(operand) == (operator == "-n")
        case "-v":
            return operand in box.env
        case "-d":
            return box.files.is_directory(path)
        case "-f":
            return box.files.exists(path) and not box.files.is_directory(path)
        case "-e" | "-r" | "-w" | "-x":
            return box.files.exists(path) or path == "/dev/null"
        case "-s":
            return box.files.is_directory(path) or _has_text(box, path)
        case "-t" | "-h" | "-L":
            return False
        case _:
            raise InvalidTest(f"{operator}: unary operator expected")


def _has_text(box: BoxState, path: str) -> bool:
    try:
        return bool(box.files.read(path))
    except BoxFileError:
        return False


def _compare(left: str, operator: str, right: str) -> bool:
    if operator in {"=", "==", "!="}:
        return (left == right) == (operator != "!=")
    if operator in {"<", ">"}:
        return left < right if operator == "<" else left > right
    if operator not in COMPARISONS:
        raise InvalidTest(f"{operator}: binary operator expected")
    for word in (left, right):
        if not NUMBER.fullmatch(word):
            raise InvalidTest(f"{word}: integer expression expected")
    return bool(COMPARISONS[operator](int(left), int(right)))


CONDITION_PROGRAMS: dict[str, Program] = {"[": _bracket, "[[": _double_bracket, "test": _test}
