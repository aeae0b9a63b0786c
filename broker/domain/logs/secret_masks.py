"""Mask secret values in log lines before they are stored or shown."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice

from broker.domain.logs.log_lines import bounded_text, clean_text, plain_text
from broker.domain.logs.secret_forms import base64_forms, escaped_forms, hexadecimal_forms, wrapped_forms
from broker.domain.workloads.credential_detection import embedded_credentials, looks_like_credential
from broker.domain.workloads.secret_variables import SecretVariable

MASK = "***"
MIN_LENGTH = 4  # shorter values would be found in ordinary words
MIN_PLAIN_LENGTH = 8  # of variables that only their names call secret, such as MAX_TOKEN
MIN_ENCODED_LENGTH = 8  # shorter values are not looked for in encoded forms
MIN_CUT_LENGTH = 8  # of the beginning of a value at the end of a text that was cut
MAX_FORMS = 4000
# What is encoded before and after a value also determines the character beside it.
BASE64_BEFORE, BASE64_AFTER = "[A-Za-z0-9+/_-]?", "[A-Za-z0-9+/_-]?={0,2}"

Masker = Callable[[str], str]


def secret_values(
    env: Iterable[tuple[str, str]], secrets: Iterable[SecretVariable], access_token: str = ""
) -> list[str]:
    """Return the values that must not appear in a lease's log.

    These are all saved secrets, variables whose names suggest a credential, passwords within the values of others
    (such as a URL), and the token of its web page.
    """
    variables = list(env)
    saved = [each.value for each in secrets if each.value]
    stated = [value for name, value in variables if looks_like_credential(name)]
    embedded = [each for value in (*(value for _, value in variables), *saved) for each in embedded_credentials(value)]
    long_enough = [value for value in (*stated, *embedded) if len(value) >= MIN_PLAIN_LENGTH]
    return list(dict.fromkeys([*long_enough, *saved, *([access_token] if access_token else [])]))


def value_masker(values: Iterable[str]) -> Masker:
    """Return a function that replaces the values in clean text.

    A value of several lines is replaced line by line, and in its encoded forms (see `secret_forms`).
    """
    return partial(_mask_forms, _patterns_by_form(values))


def excerpt_masker(values: Iterable[str]) -> Masker:
    """Return a function that masks a text which may end within a value."""
    forms = _patterns_by_form(values)

    def mask_excerpt(text: str) -> str:
        masked = _mask_forms(forms, clean_text(text))
        return next((cut for form in forms if (cut := _without_cut_value(masked, form)) != masked), masked)

    return mask_excerpt


def _mask_forms(forms: Mapping[str, str], text: str) -> str:
    found = [pattern for form, pattern in forms.items() if form in text]  # much faster than one large pattern
    return re.sub("|".join(found), MASK, text) if found else text


def mask_lines(mask: Masker, texts: Iterable[str]) -> list[str]:
    """Return lines masked and ready to be stored.

    Sequences for terminals are removed before, since they may split a value, and lines are cut afterwards.
    """
    plain = [plain_text(text) for text in texts]
    return [bounded_text(text) for text in mask("\n".join(plain)).split("\n")] if plain else []


def _patterns_by_form(values: Iterable[str]) -> dict[str, str]:
    """Return the pattern of each form to look for, longest form first."""
    ordered = sorted(set(values), key=lambda value: (len(value), value))  # short ones first: they have few forms
    encoded = [value for whole in ordered for value in _without_margins(whole) if len(value) >= MIN_ENCODED_LENGTH]
    base64 = {form for value in encoded for form in base64_forms(value)}
    candidates = chain(
        (line for value in ordered for line in _plain_lines(value)),
        (form for value in encoded for form in escaped_forms(value)),
        (form for value in encoded for form in (*hexadecimal_forms(value), *base64_forms(value))),
        (form for value in ordered for line in _encoded_lines(value) for form in escaped_forms(line)),
        (form for value in encoded for form in wrapped_forms(value)),
    )
    usable = (form for form in dict.fromkeys(candidates) if len(form) >= MIN_LENGTH and "\n" not in form)
    forms = sorted(islice(usable, MAX_FORMS), key=lambda form: (-len(form), form))
    return {
        form: f"{BASE64_BEFORE}{re.escape(form)}{BASE64_AFTER}" if form in base64 else re.escape(form) for form in forms
    }


def _plain_lines(value: str) -> Iterator[str]:
    """Yield the lines of a value as they stand in clean text."""
    return (plain_text(line).strip() for line in value.splitlines())


def _encoded_lines(value: str) -> Iterator[str]:
    return (line for line in _plain_lines(value) if MIN_ENCODED_LENGTH <= len(line) < len(value))


def _without_margins(value: str) -> set[str]:
    return {value, value.strip()}


def _without_cut_value(text: str, form: str) -> str:
    """Return a text without the beginning of a form at its end."""
    start = text.find(form[:MIN_CUT_LENGTH], max(len(text) - len(form), 0)) if len(form) > MIN_CUT_LENGTH else -1
    while start >= 0:
        if form.startswith(text[start:]):
            return text[:start] + MASK
        start = text.find(form[:MIN_CUT_LENGTH], start + 1)
    return text
