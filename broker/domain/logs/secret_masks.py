"""Mask secret values in log lines before they are stored."""

import base64
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote

from broker.domain.workloads.secret_variables import SecretVariable, looks_like_credential

MASK = "***"
MIN_LENGTH = 4  # shorter values would be found in ordinary words
MIN_PLAIN_LENGTH = 8  # of variables that only their names call secret, such as MAX_TOKEN
MIN_ENCODED_LENGTH = 8  # shorter values are not looked for in encoded forms
MAX_FORMS = 2000


def secret_values(
    env: Iterable[tuple[str, str]], secrets: Iterable[SecretVariable], access_token: str = ""
) -> list[str]:
    """Return the values that must not appear in a lease's log.

    These are all saved secrets, variables whose names suggest a credential, and the token of its web page.
    """
    stated = [value for name, value in env if looks_like_credential(name) and len(value) >= MIN_PLAIN_LENGTH]
    return [*stated, *(each.value for each in secrets if each.value), *([access_token] if access_token else [])]


def value_masker(values: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces every occurrence of the values in a line.

    A value of several lines is replaced line by line; its URL-quoted and base64 forms are replaced, too.
    """
    forms = sorted({form for value in values for form in _forms(value)}, key=lambda form: (-len(form), form))
    if not forms:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, forms[:MAX_FORMS])))
    return lambda text: pattern.sub(MASK, text)


def _forms(value: str) -> set[str]:
    lines = {line.strip() for line in value.splitlines()} | {value}
    found = {line for line in lines if len(line) >= MIN_LENGTH}
    if len(value) >= MIN_ENCODED_LENGTH:
        found |= {quote(value, safe=""), base64.b64encode(value.encode()).decode()}
    return found
