"""Check parameters of a call against the SDK's types."""

import re
import typing
from functools import cache
from types import UnionType
from typing import Any

import stripe.params
from stripe._stripe_object import UntypedStripeObject
from typing_extensions import is_typeddict

OPTIONS = {
    "api_key",
    "idempotency_key",
    "stripe_account",
    "stripe_context",
    "stripe_version",
    "max_network_retries",
    "headers",
    "content_type",
}


class WrongShape(AssertionError):
    """A call that Stripe would refuse."""


def check(name: str, params: dict[str, Any]) -> None:
    """Check the decoded parameters of a call against the TypedDict `name`."""
    module = stripe.params
    for part in name.split(".")[:-1]:
        module = getattr(module, part)
    kind = getattr(module, name.rpartition(".")[2])
    _fits(kind, params, name)


def _fits(kind: Any, value: Any, where: str) -> None:
    if kind is Any:
        return
    origin = typing.get_origin(kind)
    if origin in (typing.Union, UnionType):
        wrongs = []
        for each in typing.get_args(kind):
            try:
                return _fits(each, value, where)
            except WrongShape as wrong:
                wrongs.append(str(wrong))
        raise WrongShape("; or ".join(wrongs))
    if origin is typing.Literal:
        if value not in typing.get_args(kind):
            raise WrongShape(f"{where} is {value!r}")
    elif origin in (list, typing.Sequence):
        if not isinstance(value, list):
            raise WrongShape(f"{where} is no list: {value!r}")
        for n, each in enumerate(value):
            _fits(typing.get_args(kind)[0], each, f"{where}[{n}]")
    elif origin is dict or origin is UntypedStripeObject:
        if not isinstance(value, dict):
            raise WrongShape(f"{where} is no mapping: {value!r}")
    elif is_typeddict(kind):
        _keys(kind, value, where)
    elif kind is int:
        if not (isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value)):
            raise WrongShape(f"{where} is no whole number: {value!r}")
    elif kind is float:
        if not (isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value)):
            raise WrongShape(f"{where} is no number: {value!r}")
    elif kind is bool:
        if value not in ("true", "false"):
            raise WrongShape(f"{where} is neither true nor false: {value!r}")
    elif not isinstance(value, str):
        raise WrongShape(f"{where} is no text: {value!r}")


def _keys(kind: Any, value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise WrongShape(f"{where} has no fields: {value!r}")
    hints = _hints(kind)
    for name in kind.__required_keys__ - OPTIONS - set(value):
        raise WrongShape(f"{where} lacks {name}")
    for name, each in value.items():
        if name not in hints or name in OPTIONS:
            raise WrongShape(f"{where} has no {name}")
        _fits(hints[name], each, f"{where}.{name}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the fields of a TypedDict and their types."""
    return typing.get_type_hints(kind, localns={**vars(typing), "StripeContext": object})
