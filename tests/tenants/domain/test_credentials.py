"""A token's shape: found by its prefix, told from a typing error without a look-up, kept as a hash."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.domain import credentials, limits
from tenants.domain.text import has_control

letters = st.text(credentials.LETTERS, min_size=credentials.SECRET_LENGTH, max_size=credentials.SECRET_LENGTH)
GOOD = credentials.make(environment="live", prefix="abcd1234", secret="x" * credentials.SECRET_LENGTH)


@given(letters)
def test_what_is_made_can_be_read(secret: str) -> None:
    made = credentials.make(environment="test", prefix="abcd1234", secret=secret)
    read = credentials.read(made.text)
    assert read == credentials.Credential("abcd1234", made.digest)
    assert secret not in repr(made)


@given(st.integers(0, len(GOOD.text) - 1), st.sampled_from(credentials.LETTERS))
def test_one_wrong_letter_is_noticed(place: int, letter: str) -> None:
    wrong = GOOD.text[:place] + letter + GOOD.text[place + 1 :]
    assert (credentials.read(wrong) is None) == (wrong != GOOD.text)


@pytest.mark.parametrize(
    "text", ["", "gpb_", GOOD.text + "\n", " " + GOOD.text, GOOD.text.upper(), "x" * 50_000]
)
def test_other_text_is_no_token(text: str) -> None:
    assert credentials.read(text) is None


@pytest.mark.parametrize("text", ["a\nb", "a\x00b", "a\u202eb", "a\u200bb", "a\u2028b", "\ue000", "\ufdd0"])
def test_invisible_letters_are_seen(text: str) -> None:
    assert has_control(text)


@pytest.mark.parametrize("text", ["", "Zürich 7", "模型 – α"])
def test_ordinary_words_of_any_language_are_fine(text: str) -> None:
    assert not has_control(text)


@given(st.sampled_from(sorted(limits.SHOWN)), st.decimals(0, 10**9, places=3))
def test_a_limit_shown_and_kept_is_the_same(kind: str, figure: Decimal) -> None:
    if limits.SHOWN[kind][1] < 1000 and figure != figure.to_integral_value():  # counted in whole ones
        with pytest.raises(ValueError, match="whole"):
            limits.kept(kind, figure)
    else:
        assert limits.shown(kind, limits.kept(kind, figure)) == figure


@pytest.mark.parametrize(("count", "words"), [(96_000, "96"), (100_000, "100"), (2_500, "2.5"), (0, "0")])
def test_a_limit_is_shown_as_people_write_it(count: int, words: str) -> None:
    assert str(limits.shown("units", count)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0"), (2_500, "2.5"), (99_999, "99.999"), (100_400, "100"), (13_667_370, "13,667")],
)
def test_a_count_in_a_table_is_written_as_people_read_it(count: int, words: str) -> None:
    assert limits.written("units", count) == words
