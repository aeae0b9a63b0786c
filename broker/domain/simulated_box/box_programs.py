"""Programs of a simulated box, by name."""

import posixpath
import re
from collections.abc import Callable
from datetime import timedelta

from broker.domain.simulated_box.box_facts import PAGE_PORT, BoxFacts
from broker.domain.simulated_box.box_files import BoxFileError
from broker.domain.simulated_box.box_state import BoxState
from broker.domain.simulated_box.condition_program import CONDITION_PROGRAMS
from broker.domain.simulated_box.nvidia_smi import print_nvidia_smi
from broker.domain.simulated_box.program_calls import (
    EXIT_MISUSED,
    Program,
    ProgramCall,
    ProgramResult,
    join_lines,
    read_each,
)
from broker.domain.simulated_box.text_programs import TEXT_PROGRAMS

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhd]?)", re.ASCII)
UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
DATE_FORMAT = "%a %b %e %H:%M:%S %Y"
DATE_CODE = re.compile(r"%([sN%ntaAbBdeFHIjmMpRSTuVwyYzZD])")
DATE_ISO_OPTIONS = {"-Is", "-Iseconds", "--iso-8601=seconds"}
DATE_OPTIONS = DATE_ISO_OPTIONS | {"-u", "--utc"}
CLEAR_SCREEN = "\x1b[H\x1b[2J\x1b[3J"


def _help(call: ProgramCall) -> ProgramResult:
    names = ", ".join(sorted(available_programs(call.box.facts)))
    return ProgramResult(
        f"{call.box.facts.notice}\nIt knows: {names}.\n"
        "Also: | ; && || > >> < 2>&1, if, for, while, quotes, $VARIABLES and $(…).\n"
    )


def _echo(call: ProgramCall) -> ProgramResult:
    words, end, escapes = list(call.arguments), "\n", False
    while words and words[0] in {"-n", "-e", "-ne", "-en"}:
        option = words.pop(0)
        end, escapes = "" if "n" in option else end, escapes or "e" in option
    text = " ".join(words)
    if escapes:
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return ProgramResult(text + end)


def _cat(call: ProgramCall) -> ProgramResult:
    return read_each(call, "cat", lambda text: text)


def _head(call: ProgramCall) -> ProgramResult:
    return _read_some(call, "head", lambda lines, count: lines[:count])


def _tail(call: ProgramCall) -> ProgramResult:
    return _read_some(call, "tail", lambda lines, count: lines[max(len(lines) - count, 0) :])


def _read_some(call: ProgramCall, name: str, choose: Callable[[list[str], int], list[str]]) -> ProgramResult:
    arguments, count = list(call.arguments), 10
    if arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        number = option.removeprefix("-n").removeprefix("-") or (arguments.pop(0) if arguments else "")
        if not re.fullmatch(r"\d{1,6}", number, re.ASCII):
            return ProgramResult(error=f"{name}: invalid number of lines: '{number}'\n", status=1)
        count = int(number)
    rest = ProgramCall(call.box, tuple(arguments), call.piped)
    return read_each(rest, name, lambda text: "".join(choose(text.splitlines(keepends=True), count)))


def _wc(call: ProgramCall) -> ProgramResult:
    def count(text: str) -> str:
        counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
        wanted = [letter for letter in counts if letter in call.flags] or list(counts)
        return " ".join(str(counts[letter]) for letter in wanted) + "\n"

    return read_each(call, "wc", count)


def _grep(call: ProgramCall) -> ProgramResult:
    """Search for plain text, optionally at the beginning or end of a line.

    A regular expression of a stranger could be searched for for years.
    """
    if not call.operands:
        return ProgramResult(error="grep: give the text to search for\n", status=EXIT_MISUSED)
    pattern, *files = call.operands
    flags, begins, ends = call.flags, pattern.startswith("^"), pattern.endswith("$")
    wanted = pattern[begins : len(pattern) - ends]
    wanted = wanted.lower() if "i" in flags else wanted

    def matches(line: str) -> bool:
        line = line.lower() if "i" in flags else line
        if begins and ends:
            return line == wanted
        return line.startswith(wanted) if begins else line.endswith(wanted) if ends else wanted in line

    def search(text: str) -> str:
        return join_lines(line for line in text.splitlines() if matches(line) != ("v" in flags))

    found = read_each(ProgramCall(call.box, tuple(files), call.piped), "grep", search)
    shown = "" if "q" in flags else f"{found.text.count(chr(10))}\n" if "c" in flags else found.text
    return ProgramResult(shown, found.error, EXIT_MISUSED if found.error else int(not found.text))


def _ls(call: ProgramCall) -> ProgramResult:
    box, lines, errors = call.box, list[str](), list[str]()
    for path in call.operands or (".",):
        try:
            names = box.files.names(box.resolve(path))
        except BoxFileError as error:
            errors.append(f"ls: cannot access '{path}': {error}\n")
            continue
        shown = [each for each in names if "a" in call.flags or not each.startswith(".")]
        if len(call.operands) > 1:
            lines.append(f"{path}:")
        lines += [_long_line(box, path, each) for each in shown] if "l" in call.flags else shown
    return ProgramResult(join_lines(lines), "".join(errors), 2 * bool(errors))


def _long_line(box: BoxState, path: str, name: str) -> str:
    folder = name.endswith("/")
    inside = box.resolve(posixpath.join(path, name))
    size = 0 if folder else len(box.files.read(inside if box.files.exists(inside) else box.resolve(path)).encode())
    mode = "drwxr-xr-x" if folder else "-rw-r--r--"
    return f"{mode} 1 {box.facts.user} {box.facts.user} {size:>8} {box.started:%b %e %H:%M} {name}"


def _on_each_path(call: ProgramCall, name: str, act: Callable[[str], None]) -> ProgramResult:
    if not call.operands:
        return ProgramResult(error=f"{name}: missing operand\n", status=1)
    errors = []
    for path in call.operands:
        try:
            act(call.box.resolve(path))
        except BoxFileError as error:
            errors.append(f"{name}: {path}: {error}\n")
    return ProgramResult(error="".join(errors), status=int(bool(errors)))


def _mkdir(call: ProgramCall) -> ProgramResult:
    return _on_each_path(call, "mkdir", lambda path: call.box.files.make_directory(path, parents="p" in call.flags))


def _touch(call: ProgramCall) -> ProgramResult:
    return _on_each_path(call, "touch", lambda path: call.box.files.write(path, "", append=True))


def _rm(call: ProgramCall) -> ProgramResult:
    recursive = "r" in call.flags or "R" in call.flags
    return _on_each_path(call, "rm", lambda path: call.box.files.remove(path, recursive=recursive))


def _cd(call: ProgramCall) -> ProgramResult:
    box = call.box
    wanted = call.operands[0] if call.operands else box.env.get("HOME", "/")
    path = box.resolve(wanted)
    if not box.files.is_directory(path):
        why = "Not a directory" if box.files.exists(path) else "No such file or directory"
        return ProgramResult(error=f"bash: cd: {wanted}: {why}\n", status=1)
    box.directory = path
    return ProgramResult()


def _pwd(call: ProgramCall) -> ProgramResult:
    return ProgramResult(f"{call.box.directory}\n")


def _env(call: ProgramCall) -> ProgramResult:
    return ProgramResult(join_lines(f"{name}={value}" for name, value in sorted(call.box.env.items())))


def _printenv(call: ProgramCall) -> ProgramResult:
    if not call.operands:
        return _env(call)
    found = [call.box.env[name] for name in call.operands if name in call.box.env]
    return ProgramResult(join_lines(found), status=int(len(found) < len(call.operands)))


def _export(call: ProgramCall) -> ProgramResult:
    errors = []
    for each in call.operands:
        name, assigned, value = each.partition("=")
        if not NAME.fullmatch(name):
            errors.append(f"bash: export: `{each}': not a valid identifier\n")
        elif assigned:
            call.box.set_variables({name: value})
    return ProgramResult(error="".join(errors), status=int(bool(errors)))


def _unset(call: ProgramCall) -> ProgramResult:
    call.box.env = {name: value for name, value in call.box.env.items() if name not in call.operands}
    return ProgramResult()


def _whoami(call: ProgramCall) -> ProgramResult:
    return ProgramResult(f"{call.box.facts.user}\n")


def _id(call: ProgramCall) -> ProgramResult:
    user = call.box.facts.user
    return ProgramResult(f"uid=1000({user}) gid=1000({user}) groups=1000({user})\n")


def _hostname(call: ProgramCall) -> ProgramResult:
    return ProgramResult(f"{call.box.facts.hostname}\n")


def _date(call: ProgramCall) -> ProgramResult:
    formats = [each[1:] for each in call.operands if each.startswith("+")]
    options = [each for each in call.arguments if each.startswith("-")]
    if len(formats) != len(call.operands) or len(formats) > 1 or set(options) - DATE_OPTIONS:
        return ProgramResult(error="date: a simulated box knows only +FORMAT, -u and -Is\n", status=1)
    if formats:
        return ProgramResult(f"{DATE_CODE.sub(lambda code: _date_field(call.box, code[1]), formats[0])}\n")
    if set(options) & DATE_ISO_OPTIONS:
        return ProgramResult(f"{call.box.now.isoformat(timespec='seconds')}\n")
    return ProgramResult(f"{call.box.now:%a %b %e %H:%M:%S UTC %Y}\n")


def _date_field(box: BoxState, code: str) -> str:
    fields = {"s": str(int(box.now.timestamp())), "N": f"{box.now.microsecond:06}000", "%": "%", "n": "\n", "t": "\t"}
    return fields[code] if code in fields else box.now.strftime(f"%{code}")


def _uname(call: ProgramCall) -> ProgramResult:
    everything = f"Linux {call.box.facts.hostname} 0.0.0-simulated x86_64 GNU/Linux"
    return ProgramResult(f"{everything if 'a' in call.flags else 'Linux'}\n")


def _nproc(call: ProgramCall) -> ProgramResult:
    return ProgramResult(f"{call.box.facts.cpus}\n")


def _uptime(call: ProgramCall) -> ProgramResult:
    up = max(call.box.now - call.box.started, timedelta(0))
    hours, minutes = divmod(int(up.total_seconds()) // 60, 60)
    return ProgramResult(f" {call.box.now:%H:%M:%S} up {hours}:{minutes:02d}, 1 user\n")


def _df(call: ProgramCall) -> ProgramResult:
    facts = call.box.facts
    rows = [
        "Filesystem      Size  Used Avail Use% Mounted on",
        f"simulated  {_gib(facts.scratch_mib):>9}     0 {_gib(facts.scratch_mib):>5}   0% /",
    ]
    if facts.volume_gib:
        size = f"{facts.volume_gib}G"
        rows.append(f"volume     {size:>9}     0 {size:>5}   0% {facts.home}")
    return ProgramResult(join_lines(rows))


def _free(call: ProgramCall) -> ProgramResult:
    size = _gib(call.box.facts.memory_mib)
    return ProgramResult(f"               total        used        free\nMem:    {size:>12}           0{size:>12}\n")


def _gib(mib: int) -> str:
    return f"{mib / 1024:.0f}G" if mib else "?"


def _ps(call: ProgramCall) -> ProgramResult:
    return ProgramResult(
        "    PID TTY          TIME CMD\n      1 pts/0    00:00:00 bash\n      2 pts/0    00:00:00 ps\n"
    )


def _sleep(call: ProgramCall) -> ProgramResult:
    if not call.arguments:
        return ProgramResult(error="sleep: missing operand\n", status=1)
    total = 0.0
    for each in call.arguments:
        found = DURATION.fullmatch(each)
        if each in {"inf", "infinity"}:
            return ProgramResult(runs_on=True)
        if found is None:
            return ProgramResult(error=f"sleep: invalid time interval '{each}'\n", status=1)
        total += float(found[1]) * UNIT_SECONDS[found[2]]
    return ProgramResult(wait_s=total)


def _exit(call: ProgramCall) -> ProgramResult:
    if not call.arguments:
        return ProgramResult(status=call.box.status, exits=True)
    if not re.fullmatch(r"-?\d{1,9}", call.arguments[0], re.ASCII):
        error = f"bash: exit: {call.arguments[0]}: numeric argument required\n"
        return ProgramResult(error=error, status=EXIT_MISUSED, exits=True)
    return ProgramResult(status=int(call.arguments[0]) % 256, exits=True)


def _true(call: ProgramCall) -> ProgramResult:
    return ProgramResult()


def _false(call: ProgramCall) -> ProgramResult:
    return ProgramResult(status=1)


def _clear(call: ProgramCall) -> ProgramResult:
    return ProgramResult(CLEAR_SCREEN)


def _history(call: ProgramCall) -> ProgramResult:
    return ProgramResult(join_lines(f"{number:>5}  {line}" for number, line in enumerate(call.box.history, 1)))


def _which(call: ProgramCall) -> ProgramResult:
    found = [name for name in call.operands if name in available_programs(call.box.facts)]
    return ProgramResult(join_lines(f"/usr/bin/{name}" for name in found), status=int(len(found) < len(call.operands)))


def _nvidia_smi(call: ProgramCall) -> ProgramResult:
    time = call.box.now.strftime(DATE_FORMAT)
    text, status = print_nvidia_smi(call.arguments, call.box.facts.gpus, time=time)
    return ProgramResult(text, status=status)


def _curl(call: ProgramCall) -> ProgramResult:
    url = call.operands[0] if call.operands else ""
    host, _, path = url.removeprefix("http://").partition("/")
    if host not in {f"localhost:{PAGE_PORT}", f"127.0.0.1:{PAGE_PORT}"}:
        error = (
            f"curl: (6) Could not resolve host: {host} (a simulated box has no network; try localhost:{PAGE_PORT})\n"
        )
        return ProgramResult(error=error, status=6)
    if path:
        return ProgramResult("404 Not found\n")
    facts = call.box.facts
    gpus = "".join(f"    <li>{gpu.name} {gpu.profile or 'whole GPU'}</li>\n" for gpu in facts.gpus)
    page = f"<h1>{facts.hostname}</h1>\n<p>{facts.notice}</p>\n<ul>\n{gpus}</ul>\n"
    return ProgramResult(f"<!doctype html>\n<title>{facts.title}</title>\n{page}")


PROGRAMS: dict[str, Program] = {
    ":": _true,
    "cat": _cat,
    "cd": _cd,
    "clear": _clear,
    "curl": _curl,
    "date": _date,
    "df": _df,
    "echo": _echo,
    "env": _env,
    "exit": _exit,
    "export": _export,
    "false": _false,
    "free": _free,
    "grep": _grep,
    "head": _head,
    "help": _help,
    "history": _history,
    "hostname": _hostname,
    "id": _id,
    "logout": _exit,
    "ls": _ls,
    "mkdir": _mkdir,
    "nproc": _nproc,
    "nvidia-smi": _nvidia_smi,
    "printenv": _printenv,
    "ps": _ps,
    "pwd": _pwd,
    "rm": _rm,
    "sleep": _sleep,
    "tail": _tail,
    "touch": _touch,
    "true": _true,
    "uname": _uname,
    "unset": _unset,
    "uptime": _uptime,
    "wc": _wc,
    "which": _which,
    "whoami": _whoami,
    "wait": _true,
    **CONDITION_PROGRAMS,
    **TEXT_PROGRAMS,
}
NEEDS_GPU = {"nvidia-smi"}  # a machine without a GPU has no driver that brings it


def available_programs(facts: BoxFacts) -> dict[str, Program]:
    """Return the programs that a box has."""
    return PROGRAMS if facts.gpus else {name: run for name, run in PROGRAMS.items() if name not in NEEDS_GPU}
