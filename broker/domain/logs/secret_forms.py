"""Forms in which programs print a secret value: escaped, quoted, percent-encoded, base64 and hexadecimal."""

import html
import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

WRAPPED_WIDTHS = (64, 76)  # of lines that openssl and base64 print
URL_SAFE = str.maketrans("+/", "-_")
GO_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})  # of Go's JSON
PERCENT_CODE = re.compile("%[0-9A-F]{2}")
SHELL_SPECIAL = re.compile(r"([^A-Za-z0-9_@%+=:,./-])")
DOUBLE_QUOTED_SPECIAL = re.compile(r'(["\\$`])')


def escaped_forms(value: str) -> Iterator[str]:
    """Yield a value as languages, shells, URLs and HTML write it, without quotes."""
    escaped = json.dumps(value)[1:-1]
    unescaped = json.dumps(value, ensure_ascii=False)[1:-1]
    for text in (escaped, unescaped):
        yield from (text, text.translate(GO_ESCAPES), json.dumps(text)[1:-1])
    yield from (repr(value)[1:-1], ascii(value)[1:-1], repr(value.encode())[2:-1])
    yield repr(f'"{value}')[2:-1]  # beside a double quote, Python escapes the single ones
    yield from (shlex.quote(value).removeprefix("'").removesuffix("'"), value.replace("'", "'\\''"))
    yield from (SHELL_SPECIAL.sub(r"\\\1", value), DOUBLE_QUOTED_SPECIAL.sub(r"\\\1", value))
    for text in (quote(value, safe=""), quote(value), quote_plus(value), quote(value, safe="!'()*~")):
        yield from (text, PERCENT_CODE.sub(lambda code: code[0].lower(), text))
    yield html.escape(value)


def base64_forms(value: str) -> Iterator[str]:
    """Yield the base64 characters that a value determines, wherever it begins in what is encoded.

    In the header of basic authentication it stands after a user name, of any length.
    """
    for before in range(3):
        text = b64encode(bytes(before) + value.encode()).decode().rstrip("=")
        bits = 8 * (before + len(value.encode()))
        determined = text[-(-8 * before // 6) : bits // 6]
        yield from (determined, determined.translate(URL_SAFE))


def hexadecimal_forms(value: str) -> Iterator[str]:
    """Yield the bytes of a value as hexadecimal digits."""
    yield from (value.encode().hex(), value.encode().hex().upper())


def wrapped_forms(value: str) -> Iterator[str]:
    """Yield the lines of a long value's base64 form."""
    text = b64encode(value.encode()).decode()
    for width in WRAPPED_WIDTHS:
        if len(text) > width:
            yield from (text[at : at + width] for at in range(0, len(text), width))
