"""Programs of a simulated box: what they print, and how they fail."""

from dataclasses import replace
from datetime import timedelta

import pytest

from broker.domain.simulated_box import box_files
from broker.domain.simulated_box.box_files import (
    MAX_BYTES,
    MAX_FILES,
    MAX_PATH,
    NO_SPACE,
    BoxFileError,
    BoxFiles,
    BoxLimitExceeded,
)
from broker.domain.simulated_box.box_programs import PROGRAMS
from broker.domain.simulated_box.box_state import MAX_ENVIRONMENT, BoxState
from broker.domain.simulated_box.command_runs import plan_run
from broker.domain.simulated_box.word_expansion import MAX_WORDS
from tests.broker.domain.simulated_box.facts import BOX, STARTED


def printed(command: str) -> list[str]:
    return [line.text for line in plan_run(command, BOX, started=STARTED).lines]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("whoami; hostname; pwd", ["gpubroker", "lse-1", "/home/gpubroker"]),
        ("id", ["uid=1000(gpubroker) gid=1000(gpubroker) groups=1000(gpubroker)"]),
        ("uname -a", ["Linux lse-1 0.0.0-simulated x86_64 GNU/Linux"]),
        ("sleep 90m; uptime", [" 10:30:00 up 1:30, 1 user"]),
        ("free", ["               total        used        free", "Mem:             12G           0         12G"]),
        ("ps", ["    PID TTY          TIME CMD", "      1 pts/0    00:00:00 bash", "      2 pts/0    00:00:00 ps"]),
        ("printenv HF_TOKEN NOTHING; echo $?", ["hf_secret", "1"]),
        ("printenv | grep HF; cat /dev/null; df | wc -l", ["HF_TOKEN=hf_secret", "2"]),
        ("export A=1 B; unset A; echo [$A]", ["[]"]),
        ("which ls python; echo $?", ["/usr/bin/ls", "1"]),
        ("history", []),
        ("clear", ["\ufffd[H\ufffd[2J\ufffd[3J"]),
        ("logout", []),
        (":; true; false; echo $?", ["1"]),
        ("echo 'a b' | wc; echo 'a b' | wc -w", ["1 2 4", "2"]),
        ("echo -e 'a\\nb\\nc' | head -n 2", ["a", "b"]),
        ("echo -e 'a\\nb\\nc' | tail -1", ["c"]),
        ("echo -e 'a\\nb\\nc' | tail -n2 | head -1", ["b"]),
        ("echo -e 'Ab\\ncd' | grep -i ab", ["Ab"]),
        ("echo -e 'ab\\ncd' | grep -v ab", ["cd"]),
        ("echo a > f; ls -l f; ls -l", ["-rw-r--r-- 1 gpubroker gpubroker        2 Mar  2 09:00 f"] * 2),
        ("mkdir d; ls -l", ["drwxr-xr-x 1 gpubroker gpubroker        0 Mar  2 09:00 d/"]),
        ("ls /tmp; ls -a /tmp", [".keep"]),
        ("echo x | cat - README.txt | head -1", ["x"]),
        ("touch a; touch a; ls a", ["a"]),
        ("mkdir -p d/e; mkdir -p d/e; echo $?", ["0"]),
        ("curl localhost:8080/other", ["404 Not found"]),
        ("rm -rf README.txt; ls", []),
        ("cat README.txt 2>&1 >/dev/null", []),
        ("echo a b | cat > f; cat f", ["a b"]),
    ],
)
def test_programs_print_what_they_know(command: str, lines: list[str]) -> None:
    found = [line for line in printed(command) if "README" not in line]
    assert found == lines


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("head -n x README.txt", "head: invalid number of lines: 'x'"),
        ("head -n", "head: invalid number of lines: ''"),
        ("grep", "grep: give the text to search for"),
        ("grep a nothing", "grep: nothing: No such file or directory"),
        ("cat /etc", "cat: /etc: Is a directory"),
        ("cd README.txt", "bash: cd: README.txt: Not a directory"),
        ("ls nothing", "ls: cannot access 'nothing': No such file or directory"),
        ("mkdir /etc", "mkdir: /etc: File exists"),
        ("mkdir README.txt/x", "mkdir: README.txt/x: No such file or directory"),
        ("mkdir -p README.txt/x", "mkdir: README.txt/x: Not a directory"),
        ("touch /etc", "touch: /etc: Is a directory"),
        ("touch", "touch: missing operand"),
        ("rm nothing", "rm: nothing: No such file or directory"),
        ("sleep", "sleep: missing operand"),
        ("cat < nothing", "bash: nothing: No such file or directory"),
        ("echo a > /etc", "bash: /etc: Is a directory"),
        ("mkdir " + "a" * 600, "mkdir: " + "a" * 600 + ": File name too long"),
        ("mkdir -p " + "a" * 600, "mkdir: " + "a" * 600 + ": File name too long"),
        (";".join(f"touch f{number}" for number in range(250)), f"touch: f{MAX_FILES - 8}: {NO_SPACE}"),
        (
            "for i in {1..999}; do for j in {1..9}; do :; done; done",
            "bash: stopped: a simulated box does not imitate so much at once",
        ),
        ("ls &", "ls &: simulated, not really run"),
    ],
)
def test_failing_programs_say_why(command: str, error: str) -> None:
    lines = printed(command)
    assert error in lines or any(NO_SPACE in line for line in lines if NO_SPACE in error), lines[:5]


def test_help_names_every_program() -> None:
    assert all(name in " ".join(printed("help")) for name in PROGRAMS)


def test_df_shows_the_volume_of_a_lease() -> None:
    lines = plan_run("df -h", replace(BOX, volume_gib=50, memory_mib=0), started=STARTED).lines
    assert [line.text.split()[-1] for line in lines] == ["on", "/", "/home/gpubroker"]


def test_unknown_amounts_are_question_marks() -> None:
    assert "?" in plan_run("free", replace(BOX, memory_mib=0), started=STARTED).lines[1].text


def test_files_have_a_limit_in_all() -> None:
    files = BoxFiles({"/tmp/a": "x" * (MAX_BYTES - 10)})
    with pytest.raises(BoxFileError, match="No space left"):
        files.write("/tmp/b", "x" * 11)
    files.write("/tmp/a", "")
    files.write("/tmp/b", "x" * 11)
    with pytest.raises(BoxFileError, match="File name too long"):
        files.write("/tmp/" + "a" * MAX_PATH, "")
    assert (files.exists("/tmp/b"), files.is_directory("/tmp/b"), files.names("/")) == (True, False, ["tmp/"])


def test_a_full_disk_is_reported_by_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_files, "MAX_BYTES", 1000)
    lines = plan_run("echo " + "x" * 1000 + " > f", BOX, started=STARTED).lines
    assert any(line.text == f"bash: /home/gpubroker/f: {NO_SPACE}" and line.is_error for line in lines)


def test_variables_have_a_limit_in_all() -> None:
    box = BoxState(BOX, now=STARTED, started=STARTED)
    with pytest.raises(BoxLimitExceeded):
        box.set_variables({"A": "x" * MAX_ENVIRONMENT})
    assert "A" not in box.env


@pytest.mark.parametrize("command", ["echo $A $A $A", "echo $A$A$A", "echo $A'$'$A'$'$A"])
def test_words_have_a_limit(command: str) -> None:
    facts = replace(BOX, env=(("A", "x" * (MAX_WORDS // 2)),))
    (line,) = plan_run(command, facts, started=STARTED).lines
    assert line.text.startswith("bash: stopped:")


def test_shells_within_shells_have_a_limit() -> None:
    nested = "echo deep"
    for _ in range(6):
        nested = (
            f"sh -c {nested!r}"
            if "'" not in nested
            else 'sh -c "' + nested.replace("\\", "\\\\").replace('"', '\\"') + '"'
        )
    assert any("stopped" in line for line in printed(nested))


def test_time_passes_only_by_sleeping() -> None:
    run = plan_run("sleep 1; sleep 2s 1m", BOX, started=STARTED)
    assert run.duration_s == timedelta(seconds=63).total_seconds()


def test_the_last_line_needs_no_newline() -> None:
    assert printed("echo a; echo -n b") == ["a", "b"]


def test_a_box_prints_at_most_so_many_lines() -> None:
    assert len(printed(";".join(["nvidia-smi"] * 100))) == 2000
