"""Opaque ids: numbers that only their own scope reads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ports.opaque_ids import ID_LENGTH, NUMBER_BYTES, decode_opaque_id, encode_opaque_id

LARGEST = 2 ** (8 * NUMBER_BYTES) - 1


@given(st.integers(0, LARGEST), st.text(max_size=9))
def test_an_id_is_read_back_in_its_scope(number: int, scope: str) -> None:
    text = encode_opaque_id(number, scope=scope)
    assert len(text) == ID_LENGTH
    assert decode_opaque_id(text, scope=scope) == number
    assert encode_opaque_id(number, scope=scope) == text


@given(st.integers(0, LARGEST))
def test_an_id_of_another_scope_is_none(number: int) -> None:
    assert decode_opaque_id(encode_opaque_id(number, scope="a"), scope="b") is None


def test_ids_of_consecutive_numbers_have_nothing_in_common() -> None:
    ids = [encode_opaque_id(number, scope="a") for number in range(200)]
    assert len(set(ids)) == len({each[:6] for each in ids}) == 200
    assert ids != sorted(ids)


@pytest.mark.parametrize("text", ["", "x", "a" * ID_LENGTH, "1" * ID_LENGTH, "ä" * ID_LENGTH, "a" * 99, "a\n" * 13])
def test_another_text_is_no_id(text: str) -> None:
    assert decode_opaque_id(text, scope="a") is None
