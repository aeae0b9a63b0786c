"""Back-off between runs, and exit codes in sentences."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.automatic_extension import AutomaticExtension, lead_before_end
from broker.domain.lifecycle.command_retries import backoff_after, parse_exit_code


def test_waits_double_up_to_an_hour() -> None:
    waits = [int(backoff_after(failures).total_seconds()) for failures in range(1, 11)]
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("its command finished", 0),
        ("it ended as succeeded", 0),
        ("its command failed: exit code 137", 137),
        ("it exceeded its memory limit (OOMKilled)", None),
    ],
)
def test_an_exit_code_is_read_from_the_sentence(text: str, code: int | None) -> None:
    assert parse_exit_code(text) == code


def test_the_last_automatic_extension_is_what_is_left() -> None:
    terms = AutomaticExtension(3600, 9000)
    assert [terms.next_step_s(used) for used in (3600, 7200, 8950, 9000)] == [3600, 1800, 0, 0]
    assert AutomaticExtension().next_step_s(60) == 0


def test_a_short_lease_is_extended_in_its_last_quarter() -> None:
    assert lead_before_end(3600) == timedelta(minutes=15)
    assert lead_before_end(86_400) == timedelta(minutes=20)
