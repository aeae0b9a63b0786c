"""Interactive sessions in a simulated box: line editing, waits, and limits."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.simulated_box.box_sessions import BoxSession, SessionOutput
from tests.broker.domain.simulated_box.facts import BOX, STARTED

PROMPT = "gpubroker@lse-1:~$ "


def start_session() -> BoxSession:
    return BoxSession(BOX, now=STARTED)


def press(session: BoxSession, data: bytes, *, after_s: float = 0) -> SessionOutput:
    return session.feed(data, now=STARTED + timedelta(seconds=after_s))


def shown_on_screen(text: str) -> str:
    """Return the last line as a terminal shows it after backspaces."""
    line: list[str] = []
    cursor = 0
    for character in text.rsplit("\n", 1)[-1]:
        if character == "\b":
            cursor -= 1
        else:
            cells = [character, ""] if character == "漢" else [character]  # takes two columns
            line[cursor : cursor + len(cells)] = cells
            cursor += len(cells)
    return "".join(line).rstrip()


def test_a_session_greets_with_the_truth_and_a_prompt() -> None:
    text = start_session().start().text
    assert "Simulated GPU box: commands are imitated, nothing is executed." in text
    assert text.endswith(PROMPT)


def test_typed_keys_are_echoed_and_a_line_is_run() -> None:
    session = start_session()
    assert press(session, b"echo h").text == "echo h"
    assert press(session, b"i\r").text == f"i\r\nhi\r\n{PROMPT}"


def test_an_unknown_command_is_not_found() -> None:
    text = press(start_session(), b"foo\r").text
    assert "bash: foo: command not found (this box is simulated; type help for what it knows)" in text


def test_a_function_is_refused_in_a_session() -> None:
    assert "is not imitated by this simulated box" in press(start_session(), b"f() { ls; }\r").text


def test_a_loop_of_a_session_waits_and_can_be_interrupted() -> None:
    session = start_session()
    first = press(session, b"while true; do echo x; sleep 5; done\r")
    assert (first.text.endswith("x\r\n"), first.wait_s) == (True, 5.0)
    assert session.resume(now=STARTED + timedelta(seconds=5)).text == "x\r\n"
    assert press(session, b"\x03", after_s=6) == SessionOutput(f"^C\r\n{PROMPT}")
    assert press(session, b"set -u; echo $NO; echo $?\r").exit_code is None


def test_help_names_every_command() -> None:
    text = press(start_session(), b"help\r").text
    assert all(name in text for name in ("nvidia-smi", "sleep", "export", "curl"))


def test_sleep_asks_to_be_resumed_and_keeps_what_is_typed_ahead() -> None:
    session = start_session()
    assert press(session, b"sleep 5\r").wait_s == 5.0
    assert press(session, b"echo next\r", after_s=2) == SessionOutput("", wait_s=3.0)
    assert session.resume(now=STARTED + timedelta(seconds=4)).wait_s == 1.0
    done = session.resume(now=STARTED + timedelta(seconds=5))
    assert done == SessionOutput(f"{PROMPT}echo next\r\nnext\r\n{PROMPT}")


def test_control_c_ends_a_sleep_and_clears_a_line() -> None:
    session = start_session()
    press(session, b"sleep infinity\r")
    assert press(session, b"\x03") == SessionOutput(f"^C\r\n{PROMPT}")
    assert press(session, b"half a li\x03").text == f"half a li^C\r\n{PROMPT}"
    assert press(session, b"echo $?\r").text.endswith(f"130\r\n{PROMPT}")


@pytest.mark.parametrize(("keys", "code"), [(b"\x04", 0), (b"exit 3\r", 3), (b"false\r\x04", 1), (b"logout\r", 0)])
def test_exit_and_control_d_end_the_session(keys: bytes, code: int) -> None:
    assert press(start_session(), keys).exit_code == code


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (b"abc\x7f", "ab"),
        (b"ABCDEFGH", "ABCDEFGH"),
        (b"abc\x1b[D\x1b[DX", "aXbc"),
        (b"abc\x1bOD\x7f", "ac"),
        (b"abc\x01X\x05Y", "XabcY"),
        (b"abc\x1b[HX\x1b[FY", "XabcY"),
        (b"abc\x1b[D\x1b[3~", "ab"),
        (b"abc def\x17X", "abc X"),
        (b"abc\x15X", "X"),
        (b"abc\x01\x0bX", "X"),
        (b"abc\x02\x06X", "abcX"),
        ("ä漢b\x7f\x7fX".encode(), "äX"),
        (b"a\x1b", "a"),
        (b"a\x1b[99;99", "a"),
        (b"a\x1b[31mb\x1b?c", "ab?c"),
        (b"a\tb\xff\xfec\x00", "ab\ufffd\ufffdc"),
        (b"\x7f\x7f\x1b[Da", "a"),
    ],
)
def test_editing_keys_change_the_line(keys: bytes, line: str) -> None:
    text = press(start_session(), keys).text.replace("\a", "")
    assert shown_on_screen(text) == line


def test_what_stands_on_the_line_is_what_runs() -> None:
    assert press(start_session(), b"cho X\x01e\x05\x7fy\r").text.endswith(f"y\r\ny\r\n{PROMPT}")


def test_arrows_recall_earlier_lines() -> None:
    session = start_session()
    press(session, b"echo one\recho two\r")
    assert shown_on_screen(PROMPT + press(session, b"\x1b[A\x1b[A").text) == f"{PROMPT}echo one"
    assert shown_on_screen(press(session, b"\x1b[B\x1b[B").text) == ""
    assert "    1  echo one" in press(session, b"history\r").text


def test_control_l_clears_the_screen_and_keeps_the_line() -> None:
    assert press(start_session(), b"abc\x0c").text.endswith(f"\x1b[3J{PROMPT}abc")


def test_a_character_cut_between_two_frames_arrives_whole() -> None:
    session = start_session()
    assert press(session, "é".encode()[:1]).text == ""
    assert press(session, "é".encode()[1:]).text == "é"
    assert press(session, b"\x1b[").text == ""
    assert press(session, b"D").text == "\b"


def test_files_and_directory_last_as_long_as_the_session() -> None:
    session = start_session()
    press(session, b"mkdir work\rcd work\recho hello > notes\r")
    text = press(session, b"cat notes\r").text
    assert "hello\r\ngpubroker@lse-1:~/work$ " in text


def test_secrets_of_the_lease_are_in_its_environment() -> None:
    assert "HF_TOKEN=hf_secret" in press(start_session(), b"env\r").text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_are_taken(frames: list[bytes]) -> None:
    session = start_session()
    for frame in frames:
        assert len(press(session, frame).text) < 400_000


def test_a_flood_of_keys_stays_bounded() -> None:
    session = start_session()
    press(session, b"sleep infinity\r")
    for _ in range(50):
        press(session, b"x" * 4096)
    assert len(press(session, b"\x03" + b"y" * 10_000).text) < 20_000
    for number in range(300):
        press(session, b"\x15echo %d\r" % number)
    assert press(session, b"history\r").text.count("  echo ") < 200
