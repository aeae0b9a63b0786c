"""Batch commands in a simulated box: output, times, exit code, and limits."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.simulated_box.command_runs import MAX_LINE_LENGTH, MAX_LINES, SimulatedRun, plan_run
from tests.broker.domain.simulated_box.facts import BOX, SLICE, STARTED, WHOLE


def run(command: str) -> SimulatedRun:
    return plan_run(command, BOX, started=STARTED)


def printed(command: str) -> list[str]:
    return [line.text for line in run(command).lines]


def test_echo_prints_its_words_and_ends_at_once() -> None:
    done = run("echo hi   there")
    assert [(line.offset_s, line.text, line.is_error) for line in done.lines] == [(0.0, "hi there", False)]
    assert (done.exit_code, done.duration_s) == (0, 0.0)


def test_lines_appear_when_the_sleep_before_them_is_over() -> None:
    done = run("echo one; sleep 30; echo two; sleep 0.5m; exit 3")
    assert [(line.offset_s, line.text) for line in done.lines] == [(0.0, "one"), (30.0, "two")]
    assert (done.exit_code, done.duration_s) == (3, 60.0)
    assert [line.text for line in done.lines_until(29.9)] == ["one"]


def test_the_box_tells_the_time_at_which_a_command_runs() -> None:
    assert printed("sleep 1h; date") == ["Mon Mar  2 10:00:00 UTC 2026"]


@pytest.mark.parametrize(
    ("command", "lines", "exit_code"),
    [
        ("true && echo a || echo b", ["a"], 0),
        ("false && echo a || echo b", ["b"], 0),
        ("false || false", [], 1),
        ("false; echo $?", ["1"], 0),
        ("echo a | cat | grep a", ["a"], 0),
        ("echo a | grep b", [], 1),
        ("exit 300", [], 44),
        ("exit 7 | true; echo on", ["on"], 0),
        ("sh -c 'cd /; X=1; exit 4'; echo $? $X $PWD", ["4 /home/gpubroker"], 0),
        ("/bin/bash -c 'echo nested'", ["nested"], 0),
        ('X=5; echo $X "$X" \'$X\' ${X}0 \\$X "\\$X"', ["5 5 $X 50 $X $X"], 0),
        ("X=5 env | grep ^X=; echo [$X]", ["X=5", "[]"], 0),
        ("X='a  b'; echo $X \"$X\"", ["a b a  b"], 0),
        ("echo $HF_TOKEN $UNKNOWN ~ ~/x", ["hf_secret /home/gpubroker /home/gpubroker/x"], 0),
        ("echo a > f; echo b >> f; cat f; cat < f | wc -l", ["a", "b", "2"], 0),
        ("cat nothing 2> /dev/null || echo failed", ["failed"], 0),
        ("cat nothing > both 2>&1; cat both", ["cat: nothing: No such file or directory"], 0),
        ("echo hidden > /dev/null", [], 0),
        ("echo a # not this", ["a"], 0),
        ("echo 'two\nlines'\necho three", ["two", "lines", "three"], 0),
        ("mkdir -p a/b; touch a/b/c; ls a a/b; rm -rf a; ls", ["a:", "b/", "a/b:", "c", "README.txt"], 0),
        ("cd /etc; pwd; ls; cd", ["/etc", "hostname", "os-release"], 0),
        ("printf() { :; }", ["printf() { :; }: simulated, not really run"], None),
        ("seq 3 | tail -n 1", ["3"], 0),
        ("awk 1 f | tail -n 1", ["awk 1 f: simulated, not really run"], None),
        ("echo -n a; echo -e 'b\\tc'", ["ab\tc"], 0),
        ("python3 --version", ["Python 3.12 (simulated, not installed)"], 0),
        ("nproc; whoami; hostname; uname", ["2", "gpubroker", "lse-1", "Linux"], 0),
    ],
)
def test_shell_lines_print_what_a_shell_prints(command: str, lines: list[str], exit_code: int | None) -> None:
    assert (printed(command), run(command).exit_code) == (lines, exit_code)


@pytest.mark.parametrize(
    ("command", "error", "exit_code"),
    [
        ("echo 'open", "bash: unexpected EOF while looking for matching `''", 2),
        ("echo a &&", "bash: syntax error near unexpected token `newline'", 2),
        ("echo a >", "bash: syntax error near unexpected token `newline'", 2),
        ("echo a > /no/where", "bash: /no/where: No such file or directory", 1),
        ("cd nowhere", "bash: cd: nowhere: No such file or directory", 1),
        ("sleep soon", "sleep: invalid time interval 'soon'", 1),
        ("exit x", "bash: exit: x: numeric argument required", 2),
        ("export 1=2", "bash: export: `1=2': not a valid identifier", 1),
        ("rm /etc", "rm: /etc: Is a directory", 1),
        ("rm -rf /", "rm: /: It is dangerous to operate recursively on '/'", 1),
        ("curl example.com", "curl: (6) Could not resolve host: example.com", 6),
    ],
)
def test_a_failing_command_says_why_on_its_error_stream(command: str, error: str, exit_code: int) -> None:
    done = run(command)
    assert done.lines[0].text.startswith(error)
    assert (done.lines[0].is_error, done.exit_code) == (True, exit_code)


@pytest.mark.parametrize(
    "command",
    ["python train.py", "torchrun --nproc 8 x.py", "./run.sh", "case a in a) ls;; esac", "ls & wait", "cat << EOF"],
)
def test_an_unknown_program_says_so_and_runs_until_its_lease_ends(command: str) -> None:
    done = run(command)
    assert [line.text for line in done.lines] == [f"{command}: simulated, not really run"]
    assert (done.exit_code, done.duration_s) == (None, None)


@pytest.mark.parametrize("command", ["", "   ", "sleep infinity", "sleep 999999999d"])
def test_no_command_and_an_endless_sleep_run_until_the_lease_ends(command: str) -> None:
    assert run(command) == SimulatedRun((), exit_code=None, duration_s=None)


def test_nvidia_smi_shows_the_slice_of_the_box() -> None:
    text = "\n".join(printed("nvidia-smi"))
    assert "NVIDIA H100 SXM 80GB" in text
    assert "0MiB /  81559MiB" in text
    assert "0MiB /  9856MiB" in text
    assert "1g.10gb" in text
    assert "(simulated)" in text
    assert {len(line) for line in text.splitlines()[1:] if line} == {91}


def test_nvidia_smi_lists_devices_like_the_real_one() -> None:
    assert printed("nvidia-smi -L") == [
        "GPU 0: NVIDIA H100 SXM 80GB (UUID: GPU-1a)",
        "  MIG 1g.10gb      Device  0: (UUID: MIG-7b)",
    ]


def test_nvidia_smi_shows_no_mig_devices_on_a_whole_gpu() -> None:
    lines = plan_run("nvidia-smi", replace(BOX, gpus=(WHOLE,)), started=STARTED).lines
    text = "\n".join(line.text for line in lines)
    assert "MIG devices" not in text
    assert "Disabled" in text


def test_nvidia_smi_groups_slices_of_one_gpu() -> None:
    other = replace(SLICE, mig_uuid="MIG-8b")
    lines = plan_run("nvidia-smi -L", replace(BOX, gpus=(SLICE, other, WHOLE)), started=STARTED).lines
    assert [line.text.split(":")[0].strip() for line in lines] == [
        "GPU 0", "MIG 1g.10gb      Device  0", "MIG 1g.10gb      Device  1", "GPU 1",
    ]  # fmt: skip


def test_nvidia_smi_answers_queries() -> None:
    command = "nvidia-smi --query-gpu=index,name,memory.total,temperature.gpu --format=csv"
    assert printed(command) == [
        "index, name, memory.total [MiB], temperature.gpu",
        "0, NVIDIA H100 SXM 80GB, 81559 MiB, [N/A]",
    ]
    assert printed("nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits") == ["81559"]
    assert run("nvidia-smi --unknown").exit_code == 2


def test_a_box_without_a_gpu_has_no_nvidia_smi() -> None:
    done = plan_run("nvidia-smi", replace(BOX, gpus=()), started=STARTED)
    assert ([line.text for line in done.lines], done.exit_code) == (["bash: nvidia-smi: command not found"], 127)


def test_curl_reads_the_little_page_of_the_box() -> None:
    assert "<li>NVIDIA H100 SXM 80GB 1g.10gb</li>" in "\n".join(printed("curl -s http://localhost:8080/"))


@pytest.mark.parametrize(
    "command",
    [
        "export A=aaaaaaaa;" + "export A=$A$A;" * 100,
        "A=aaaaaaaa;" + "A=$A$A;" * 100,
        "export A=aaaaaaaa;" + "export A=$A$A;" * 11 + "echo $A;" * 200,
        "echo a>f;" + "cat f f f f >> g; cat g g g >> f;" * 60,
        "echo " + "$HF_TOKEN" * 400 + "| cat" * 100,
        ";".join(["echo x"] * 600),
        "sh -c 'sh -c \"sh -c sh\"'",
        "((((((((((",
        "'" * 1999,
        "\\" * 1999,
        "$" * 1999,
        "${" * 900,
        "echo \0\x01\x1b[31m",
    ],
)
def test_hostile_lines_stay_small(command: str) -> None:
    done = run(command)
    assert len(done.lines) <= MAX_LINES
    assert sum(len(line.text) for line in done.lines) < 1_000_000
    assert all(len(line.text) <= MAX_LINE_LENGTH + 1 and "\0" not in line.text for line in done.lines)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ae $X'\"\\;|&><\n(){}=#~`/012", max_size=60))
def test_any_line_has_an_outcome(command: str) -> None:
    done = run(command)
    assert (done.exit_code is None) == (done.duration_s is None)
    assert done == run(command)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "echo",
                "cat",
                "ls",
                "rm",
                "mkdir",
                "touch",
                "export",
                "env",
                "head",
                "-n",
                "1",
                "f",
                ">",
                ">>",
                "|",
                ";",
                "&&",
                "~",
                "/",
                "$X",
            ]
        )
    )
)
def test_any_words_have_an_outcome(words: list[str]) -> None:
    run(" ".join(words))


def test_a_run_longer_than_any_lease_goes_on() -> None:
    done = run("sleep 200d; sleep 200d; echo late")
    assert (done.lines, done.exit_code) == ((), None)
    assert timedelta(days=200).total_seconds() == run("sleep 200d").duration_s
