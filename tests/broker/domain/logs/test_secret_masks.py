"""Secret values in log lines are replaced, in every form programs print them."""

import base64

import pytest

from broker.domain.logs.secret_masks import secret_values, value_masker
from broker.domain.workloads.secret_variables import SecretVariable

VALUE = "hf_pa/ss+word=1"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (f"HF_TOKEN={VALUE}", "HF_TOKEN=***"),
        (f"{VALUE}{VALUE}", "******"),
        ("?token=hf_pa%2Fss%2Bword%3D1&x=1", "?token=***&x=1"),
        (f"Basic {base64.b64encode(VALUE.encode()).decode()}", "Basic ***"),
        ("nothing secret", "nothing secret"),
    ],
)
def test_a_value_is_replaced_in_every_form(line: str, masked: str) -> None:
    assert value_masker([VALUE])(line) == masked


def test_a_value_of_several_lines_is_replaced_line_by_line() -> None:
    mask = value_masker(["-----BEGIN KEY-----\nMIIEabc\n-----END KEY-----\n"])
    assert [mask(line) for line in ("-----BEGIN KEY-----", "MIIEabc", "-----END KEY-----")] == ["***"] * 3


def test_the_longest_of_overlapping_values_is_replaced() -> None:
    assert value_masker(["secret", "secret-of-mine"])("secret-of-mine") == "***"


def test_a_value_too_short_to_tell_from_words_is_left() -> None:
    assert value_masker(["abc", "", "\n"])("abc abc") == "abc abc"


def test_which_values_of_a_lease_are_secret() -> None:
    env = [("MODE", "train"), ("WANDB_API_KEY", "w-123456"), ("MONKEY", "george"), ("MAX_TOKEN", "2048")]
    secrets = [SecretVariable("HF_TOKEN", "sec_1", 1, "hf-1234"), SecretVariable("UNREAD", "sec_2", 1, None)]
    assert secret_values(env, secrets, "token-1") == ["w-123456", "hf-1234", "token-1"]
    assert secret_values([], []) == []
