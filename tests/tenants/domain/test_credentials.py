"""API tokens, control characters and displayed quota limits."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.domain import credentials, quota_limits
from tenants.domain.single_line_text import has_control

letters = st.text(credentials.ALPHABET, min_size=credentials.SECRET_LENGTH, max_size=credentials.SECRET_LENGTH)
GOOD = credentials.compose_token(environment="live", prefix="abcd1234", secret="x" * credentials.SECRET_LENGTH)


@given(letters)
def test_a_composed_token_can_be_parsed(secret: str) -> None:
    made = credentials.compose_token(environment="test", prefix="abcd1234", secret=secret)
    read = credentials.parse_token(made.text)
    assert read == credentials.Credential("abcd1234", made.digest)
    assert secret not in repr(made)


@given(st.integers(0, len(GOOD.text) - 1), st.sampled_from(credentials.ALPHABET))
def test_one_wrong_character_makes_a_token_invalid(place: int, letter: str) -> None:
    wrong = GOOD.text[:place] + letter + GOOD.text[place + 1 :]
    assert (credentials.parse_token(wrong) is None) == (wrong != GOOD.text)


@pytest.mark.parametrize("text", ["", "gpb_", GOOD.text + "\n", " " + GOOD.text, GOOD.text.upper(), "x" * 50_000])
def test_other_text_is_not_parsed_as_a_token(text: str) -> None:
    assert credentials.parse_token(text) is None


@pytest.mark.parametrize("text", ["a\nb", "a\x00b", "a\u202eb", "a\u200bb", "a\u2028b", "\ue000", "\ufdd0"])
def test_control_characters_are_detected(text: str) -> None:
    assert has_control(text)


@pytest.mark.parametrize("text", ["", "Zürich 7", "模型 – α"])
def test_ordinary_text_of_any_language_has_no_control_characters(text: str) -> None:
    assert not has_control(text)


@given(st.sampled_from(sorted(quota_limits.QUOTA_UNITS)), st.decimals(0, 10**9, places=3))
def test_a_displayed_limit_equals_the_stored_one(kind: str, figure: Decimal) -> None:
    if quota_limits.QUOTA_UNITS[kind][1] < 1000 and figure != figure.to_integral_value():  # counted in whole ones
        with pytest.raises(ValueError, match="whole"):
            quota_limits.to_stored(kind, figure)
    else:
        assert quota_limits.to_displayed(kind, quota_limits.to_stored(kind, figure)) == figure


@pytest.mark.parametrize(("count", "words"), [(96_000, "96"), (100_000, "100"), (2_500, "2.5"), (0, "0")])
def test_a_limit_is_displayed_without_trailing_zeros(count: int, words: str) -> None:
    assert str(quota_limits.to_displayed("units", count)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0"), (2_500, "2.5"), (99_999, "99.999"), (100_400, "100"), (13_667_370, "13,667")],
)
def test_a_count_is_formatted_with_separators_and_rounding(count: int, words: str) -> None:
    assert quota_limits.format_count("units", count) == words
