"""Log lines: what is stored of a text, levels, and the stored form."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.logs.log_lines import (
    MAX_LINE_BYTES,
    LineSource,
    LogLevel,
    LogLine,
    clean_text,
    decode_lines,
    encode_lines,
    level_of,
)

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07prompt", "prompt"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("lone \x1b escape", "lone  escape"),
        ("\x1b(B\x1b[mplain\x1b7", "plain"),
        ("\x9b1mbold", "bold"),
        ("10%\r50%\r100%", "100%"),
        ("done\r", "done"),
        ("\r\r", ""),
        ("a\0b\x07", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        ("tab\tstays", "tab\tstays"),
        ("two\nlines", "two lines"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
def test_what_is_stored_of_a_line(text: str, kept: str) -> None:
    assert clean_text(text) == kept


def test_a_long_line_is_cut_between_characters_and_says_so() -> None:
    cut = clean_text("é" * MAX_LINE_BYTES)
    assert cut == "é" * (MAX_LINE_BYTES // 2) + f" … ({MAX_LINE_BYTES:,} bytes cut)"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-07-01 ERROR no space left", LogLevel.ERROR),
        ("Traceback (most recent call last):", LogLevel.ERROR),
        ("ValueError: bad", LogLevel.ERROR),
        ("torch.OutOfMemoryError: CUDA out of memory", LogLevel.NONE),
        ("error: linker failed", LogLevel.ERROR),
        ("WARN slow", LogLevel.WARNING),
        ("/x.py:3: UserWarning: odd", LogLevel.NONE),
        ("INFO:     Started server process", LogLevel.INFO),
        ("errors: none of them", LogLevel.NONE),
        ("epoch 1 loss 0.3", LogLevel.NONE),
        ("x" * 300 + " ERROR", LogLevel.NONE),
    ],
)
def test_levels_are_what_a_line_states(text: str, level: LogLevel) -> None:
    assert (level_of(text), LogLine(NOW, text).level) == (level, level)


MOMENTS = st.integers(0, 10**15).map(lambda us: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us))
LINES = st.builds(LogLine, MOMENTS, st.text().map(clean_text), st.sampled_from(LineSource))


@given(st.lists(LINES, max_size=20), st.integers(1, 10**12))
def test_stored_lines_are_read_as_they_were(lines: list[LogLine], first: int) -> None:
    found = list(decode_lines(encode_lines(lines), first=first))
    assert [each.line for each in found] == lines
    assert [each.number for each in found] == list(range(first, first + len(lines)))
