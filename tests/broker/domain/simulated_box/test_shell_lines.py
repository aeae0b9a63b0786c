"""Ordinary batch lines in a simulated box end as in bash; the results here are those of bash 5."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.simulated_box.command_runs import SimulatedRun, plan_run
from tests.broker.domain.simulated_box.facts import BOX, STARTED


def run(command: str) -> SimulatedRun:
    return plan_run(command, BOX, started=STARTED)


def outcome(command: str) -> tuple[list[str], int | None]:
    done = run(command)
    return [line.text for line in done.lines if not line.is_error], done.exit_code


@pytest.mark.parametrize(
    ("command", "lines", "exit_code"),
    [
        ("set -e; echo a; false; echo b", ["a"], 1),
        ("set -e; false || echo b; echo c", ["b", "c"], 0),
        ("set -e; false && echo b; echo c", ["c"], 0),
        ("set -e; if false; then echo x; fi; ! true; echo y", ["y"], 0),
        ("set -e; (false); echo y", [], 1),
        ("set -e; { false; }; echo y", [], 1),
        ("set -e; true | false; echo y", [], 1),
        ("set -e; false | true; echo y", ["y"], 0),
        ("set -eo pipefail; false | true; echo y", [], 1),
        ("set -e; x=$(false); echo y", [], 1),
        ("set -e; while false; do echo; done; for i in 1; do false; done; echo y", [], 1),
        ("set -e; [ 1 = 2 ] && echo two; echo end", ["end"], 0),
        ("set -e; set +e; false; echo $?", ["1"], 0),
        ("set -euo pipefail; echo $NOPE; echo y", [], 1),
        ("set -u; echo ${NOPE:-d} ${NOPE-e}", ["d e"], 0),
        ("bash -euo pipefail -c 'echo a; false; echo b'; echo $?", ["a", "1"], 0),
        ("false\necho after", ["after"], 0),
    ],
)
def test_errors_end_a_line_where_its_options_say_so(command: str, lines: list[str], exit_code: int) -> None:
    assert outcome(command) == (lines, exit_code)


@pytest.mark.parametrize(
    ("command", "lines", "exit_code"),
    [
        ("[ -f nothing ] && echo yes", [], 1),
        ("[ -f README.txt ] && echo yes", ["yes"], 0),
        ("touch f; [ -f f ] && [ ! -s f ] && test -d . && [ -e /tmp ] && echo dir", ["dir"], 0),
        ("test 1 -lt 2 && echo lt; test a = b || echo ne", ["lt", "ne"], 0),
        ("[ a -a b ] && [ '' -o b ] && [ ! '' ]", [], 0),
        ("[ 1 -eq x ]; echo $?; [ ; echo $?; [ a b c d ]; echo $?", ["2", "2", "2"], 0),
        ("[[ -n abc ]] && [[ 3 -gt 2 ]] && [[ a == a ]] && echo y", ["y"], 0),
        ('[ "$HOME" ] && [ -z "$NOPE" ] && echo home', ["home"], 0),
        ("if false; then echo a; elif [ 1 = 1 ]; then echo b; else echo c; fi", ["b"], 0),
        ("if ! true; then echo neg; fi; echo $?", ["0"], 0),
        ("if true\nthen echo t\nelse echo f\nfi", ["t"], 0),
        ("! false; echo $?", ["0"], 0),
        ("true && { echo in; false; } || echo out", ["in", "out"], 0),
        ("echo done; echo if; echo then", ["done", "if", "then"], 0),
    ],
)
def test_conditions_hold_as_in_a_shell(command: str, lines: list[str], exit_code: int) -> None:
    assert outcome(command) == (lines, exit_code)


@pytest.mark.parametrize(
    ("command", "lines", "exit_code"),
    [
        ("for i in 1 2 3; do echo $i; done", ["1", "2", "3"], 0),
        ("for i in {1..3}; do echo -n $i; done; echo", ["123"], 0),
        ("for i in $(seq 2 4)\ndo\n  echo n$i\ndone", ["n2", "n3", "n4"], 0),
        ("for f in a b; do for g in 1 2; do [ $g = 2 ] && continue 2; echo $f$g; done; done", ["a1", "b1"], 0),
        ("for i in 1 2 3; do [ $i = 2 ] && break; echo $i; done; echo $?", ["1", "0"], 0),
        ("i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done", ["0", "1", "2"], 0),
        ("i=3; until [ $i -le 0 ]; do i=$((i - 1)); done; echo $i", ["0"], 0),
        ("seq 3 | while read x; do echo \"<$x>\"; done", ["<1>", "<2>", "<3>"], 0),
        ("printf 'a 1\\nb 2\\n' > f; while read k v; do echo $v$k; done < f", ["1a", "2b"], 0),
        ("for i in 1 2; do echo $i; done > f; cat f", ["1", "2"], 0),
        ("{ echo a; echo b; } | wc -l; (exit 4); echo $?", ["2", "4"], 0),
        ("a=1; { a=2; }; echo $a; (a=3; cd /); echo $a $PWD", ["2", "2 /home/gpubroker"], 0),
    ],
)  # fmt: skip
def test_loops_and_groups_run_as_in_a_shell(command: str, lines: list[str], exit_code: int) -> None:
    assert outcome(command) == (lines, exit_code)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("date +%s", ["1772442000"]),
        ("date -u +%Y-%m-%dT%H:%M:%S", ["2026-03-02T09:00:00"]),
        ("date -Is", ["2026-03-02T09:00:00+00:00"]),
        ("sleep 90; date +%s", ["1772442090"]),
        ("env | sort | grep ^HF", ["HF_TOKEN=hf_secret"]),
        ("env B=2 env | grep ^B=; echo [$B]", ["B=2", "[]"]),
        ("echo $(echo a; echo b) \"$(printf 'x\\n\\n')\"", ["a b x"]),
        ("echo $((2*(3+4))) $((-7/2)) $((7%3)) $((1<2)) $((!0)); x=5; echo $(( $x + x ))", ["14 -3 1 1 1", "10"]),
        ("printf '%s-%d\\n' a 1 b 2; printf '%05.1f%%\\n' 3.14159", ["a-1", "b-2", "003.1%"]),
        ("printf 'b\\na\\nb\\n' | sort | uniq -c", ["      1 a", "      2 b"]),
        ("printf '10\\n9\\n9\\n' | sort -n -u; printf 'a\\nb\\n' | sort -r", ["9", "10", "b", "a"]),
        ("echo a:b:c | cut -d: -f2-; echo abc | cut -c2", ["b:c", "b"]),
        ("echo hello | tr a-z A-Z; echo a1b2 | tr -d 0-9", ["HELLO", "ab"]),
        ("cat <<< 'here string'; read x y <<< 'a b c'; echo $y", ["here string", "b c"]),
        ("echo a | tee f | cat; cat f; cp f g; mv g h; cat h; ls", ["a", "a", "a", "README.txt", "f", "h"]),
        ("basename /a/b.txt .txt; dirname /a/b", ["b", "/a"]),
        ("command -v ls; echo x | grep -q x && echo found; echo x | grep -c x", ["/usr/bin/ls", "found", "1"]),
        ("echo both &> f; cat f; { echo a; echo b >&2; } 2> /dev/null", ["both", "a"]),
        ("exec echo last; echo never", ["last"]),
        ("nohup nvidia-smi -L | wc -l; seq 3 1; seq 1 2 3", ["2", "1", "3"]),
    ],
)  # fmt: skip
def test_usual_programs_print_what_they_print_elsewhere(command: str, lines: list[str]) -> None:
    assert outcome(command)[0] == lines


def test_output_sent_to_the_error_stream_is_an_error() -> None:
    (line,) = run("echo hi >&2").lines
    assert (line.text, line.is_error) == ("hi", True)
    assert [each.text for each in run("set -x; echo 'a b'").lines] == ["+ echo 'a b'", "a b"]
    assert outcome("echo hi >&2 2>/dev/null | cat; echo err 2>&1 1>&2")[0] == ["err"]


def test_a_program_that_is_not_imitated_ends_nothing_and_says_so_once() -> None:
    done = run("set -e; echo begin; for i in 1 2 3; do python train.py --fold $i; done; echo end")
    assert [line.text for line in done.lines] == ["begin", "python train.py --fold $i: simulated, not really run"]
    assert (done.exit_code, done.duration_s) == (None, None)


def test_an_endless_loop_goes_on_until_its_lease_ends() -> None:
    done = run("while true; do nvidia-smi -L; sleep 60; done")
    assert [line.offset_s for line in done.lines[:4]] == [0.0, 0.0, 60.0, 60.0]
    done = run("while true; do sleep 60; done")
    assert (done.exit_code, done.lines[-1].text) == (None, "the loop goes on until its lease ends (simulated)")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("if true; echo x", "syntax error: unexpected end of file"),
        ("for i in 1 2; echo $i; done", "syntax error near unexpected token `echo'"),
        ("echo )", "syntax error near unexpected token `)'"),
        ("done", "syntax error near unexpected token `done'"),
        ("echo a; ; echo c", "syntax error near unexpected token `;'"),
        ("echo $(", "unexpected EOF while looking for matching `)'"),
    ],
)
def test_an_invalid_line_runs_nothing(command: str, error: str) -> None:
    done = run(command)
    assert ([line.text for line in done.lines], done.exit_code) == ([f"bash: {error}"], 2)


@pytest.mark.parametrize(
    "command",
    [
        "echo $((x++))", "echo $((1/0))", "echo $((1 +))", "set -z", "set -o nothing", "seq x", "seq 1 0 2",
        "seq 99999",
        "cut -f x f", "cut -d:: -f1 f", "tr a", "date -d tomorrow", "cp a", "cp nothing x", "basename", "printf",
        "sort no",
        "uniq no", "tee /etc", "read 1x", "[[ a -xx b ]]", "test -q f", "cat <<< a > /no/where", "sh -c",
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(command: str) -> None:
    assert run(command).lines


@pytest.mark.parametrize(
    "command",
    [
        "while :; do echo x; done",
        "for i in {1..900}; do export A$i=1; done; for i in {1..900}; do env > /dev/null; done",
        "x=aaaaaaaaaaaaaaaa; for i in {1..12}; do x=$x$x; done; while true; do y=$x; done",
        "seq 10000 > f; for i in {1..900}; do sort f f f f > /dev/null; done",
        "for i in {1..999}; do sh -c '" + "echo;" * 550 + "'; done",
        "for a in {1..999}; do for b in {1..999}; do :; done; done",
        "$((" * 800, "(" * 3000, "{ " * 1500, "if " * 1000, "! " * 1900 + "true", "exec " * 790 + "true", "$(" * 1500,
        "env A=1 " * 480 + "true", "echo $((" + "-" * 3000 + "1))", "echo $((" + "(" * 1500 + "1" + ")" * 1500 + "))",
        "[ " + "! " * 1900 + "a ]", "echo " + "$(echo " * 100 + ")" * 100, "date +" + "%A" * 1900,
    ],
)  # fmt: skip
def test_hostile_lines_are_answered_quickly(command: str) -> None:
    began = time.process_time()
    run(command)
    assert time.process_time() - began < 2  # some 0.2 s


WORDS = [
    "if", "then", "else", "elif", "fi", "for", "in", "while", "until", "do", "done", "{", "}", "(", ")", "!", ";", "&&",
    "||", "|", "\n", "true", "false", "echo", "x", "$x", "$(", "$((", "))", "set -e", "[", "]", "<<<", ">", "read",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_control_words_have_an_outcome(words: list[str]) -> None:
    done = run(" ".join(words))
    assert (done.exit_code is None) == (done.duration_s is None)
