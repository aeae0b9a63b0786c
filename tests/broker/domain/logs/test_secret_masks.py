"""Secret values in log lines are replaced, in every form programs print them."""

import base64
import html
import json
import re
import shlex
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, quote_plus

import pytest

from broker.domain.logs.log_lines import MAX_LINE_BYTES
from broker.domain.logs.secret_masks import MAX_FORMS, excerpt_masker, mask_lines, secret_values, value_masker
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


QUOTED = "p@ss w0rd/+=\"x'y&z<ü$"
JSON_KEY = json.dumps({"type": "service_account", "private_key": "-----BEGIN KEY-----\nMIIEabcdef\n-----END"}, indent=2)


def basic_auth(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("value", [QUOTED, JSON_KEY, "token-of-plain-letters"])
@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda value: json.dumps(value, ensure_ascii=False),
        lambda value: json.dumps(json.dumps(value)),
        lambda value: json.dumps(value).replace("&", "\\u0026").replace("<", "\\u003c"),
        repr,
        ascii,
        lambda value: repr([value, 'it is "quoted"']),
        lambda value: repr(value.encode()),
        shlex.quote,
        lambda value: "'" + value.replace("'", "'\\''") + "'",
        lambda value: quote(value, safe=""),
        quote,
        quote_plus,
        lambda value: re.sub("%..", lambda code: code[0].lower(), quote(value, safe="")),
        html.escape,
        lambda value: value.encode().hex(),
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
        *(partial(basic_auth, user) for user in ("", "a", "ab", "abc")),
        lambda value: base64.encodebytes(value.encode()).decode().rstrip("\n"),
    ],
)
def test_a_value_is_replaced_however_a_program_writes_it(value: str, write: Callable[[str], str]) -> None:
    written = write(value)
    masked = "\n".join(mask_lines(value_masker([value]), written.split("\n")))
    assert "***" in masked
    assert len(masked) <= 30 + 4 * written.count("\n"), masked  # quotes, braces and the base64 form of a user name


@pytest.mark.parametrize(
    "split",
    [
        "hf_\x1b[31maaaa-bbbb\x1b[0m",
        "hf_aaaa\x1b(B\x1b[m-bbbb",
        "hf_aaaa\x9b1m-bbbb",
        "hf_\x1b]8;;http://x\x07aaaa\x1b]8;;\x07-bbbb",
        "\x1b7hf_aaaa\x1b8-bbbb",
        "loading\rhf_aaaa-bbbb",
    ],
)
def test_a_value_split_by_terminal_sequences_is_replaced(split: str) -> None:
    assert mask_lines(value_masker(["hf_aaaa-bbbb"]), [split, "next"]) == ["***", "next"]


def test_a_value_at_the_end_of_a_line_that_is_too_long_is_replaced_before_the_cut() -> None:
    (line,) = mask_lines(value_masker(["hf_aaaa-bbbb"]), ["x" * (MAX_LINE_BYTES - 6) + "hf_aaaa-bbbb"])
    assert "hf_" not in line


def test_a_value_with_a_control_character_is_replaced_as_it_is_stored() -> None:
    assert mask_lines(value_masker(["abc\x01def-ghi"]), ["<abc\x01def-ghi>"]) == ["<***>"]


def test_no_line_is_lost_by_masking() -> None:
    values = [JSON_KEY, "a\nb\n", "one line\n"]
    texts = ["", "a\nb", "one line", *JSON_KEY.split("\n"), ""]
    assert len(mask_lines(value_masker(values), texts)) == len(texts)
    assert mask_lines(value_masker(values), []) == []


def test_a_large_secret_does_not_displace_a_small_one() -> None:
    large = "\n".join(f"line {number}" for number in range(2 * MAX_FORMS))
    assert value_masker([large, "hf_aaaa"])("hf_aaaa") == "***"


def test_an_excerpt_is_cleaned_and_a_value_cut_at_its_end_replaced() -> None:
    mask = excerpt_masker(["hf_aaaa-bbbb-cccc"])
    assert mask("exit code 1: \x1b[31mtoken hf_aaaa-bb") == "exit code 1: token ***"
    assert mask("exit code 1: hf_aaaa-bbbb-cccc rejected") == "exit code 1: *** rejected"
    assert mask("exit code 1: hf_aaaa-xxxx hf_a") == "exit code 1: hf_aaaa-xxxx hf_a"
    assert mask("") == ""


WORD, SAVED = "s3cret%2Fpass", "very-long-word"


def test_passwords_within_values_are_secret() -> None:
    env = [
        ("DATABASE_URL", f"postgresql://app:{WORD}@db/x"),
        ("PIP_INDEX_URL", "https://ghp_abcdefghijklmnop@pypi.example/simple"),
        ("DSN", "host=db user=app password=hunter22hunter22"),
        ("CACHE_URL", "redis://:$(REDIS_PASS)@cache"),
    ]
    values = secret_values(env, [SecretVariable("MONGO_URL", "sec_1", 1, f"mongodb://u:{SAVED}@m/")], "")
    assert {"s3cret/pass", "ghp_abcdefghijklmnop", "hunter22hunter22", SAVED} <= set(values)
    assert value_masker(values)(f"dial postgresql://app:{WORD}@db/x failed") == "dial postgresql://***@db/x failed"
    assert not any("REDIS_PASS" in value for value in values)
