"""Request bodies: the JSON parser, and serializer fields shared by many.

They check format only; whether a value is allowed is decided by services.
"""

import json
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from tenants.domain.single_line_text import NAME_LENGTH, has_control

MAX_TAGS, MAX_TAG_LENGTH = 20, 60
MAX_JSON_DEPTH = 20


class StrictJSONParser(BaseParser):
    """Parser for strict JSON: one object, no NaN, no duplicate keys, limited depth, no NUL."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        try:
            body = json.loads(
                stream.read().decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicate_keys
            )
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise ParseError("The body must be one JSON object.")
        _check_json_value(body, MAX_JSON_DEPTH)
        return body


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a valid JSON number")


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError("a name occurs twice in one object")
    return dict(pairs)


def _check_json_value(value: Any, depth: int) -> None:
    if depth == 0:
        raise ParseError(f"The body is nested more than {MAX_JSON_DEPTH} levels deep.")
    if isinstance(value, str) and (("\x00" in value) or any("\ud800" <= c <= "\udfff" for c in value)):
        raise ParseError("Text must not contain NUL or an unpaired surrogate.")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**63 - 1:
        raise ParseError("A number does not fit into 64 bits.")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_json_value(name, depth)
            _check_json_value(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check_json_value(inner, depth - 1)


class NameField(serializers.CharField):
    """Name that people give: one line of at most 120 characters, none of them invisible."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("max_length", NAME_LENGTH)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text = str(super().to_internal_value(data))
        if has_control(text):
            raise serializers.ValidationError("Must not contain control or invisible characters.", "control")
        return text


class TagsField(serializers.DictField):
    """Small map of strings, such as `{"team": "nlp"}`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=NameField(max_length=MAX_TAG_LENGTH, allow_blank=True), **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        tags: dict[str, Any] = super().to_internal_value(data)
        if len(tags) > MAX_TAGS:
            raise serializers.ValidationError(f"Must have at most {MAX_TAGS} tags.", "too_many")
        for name in tags:
            if not 1 <= len(name) <= MAX_TAG_LENGTH or has_control(name):
                raise serializers.ValidationError(
                    f"A tag's name must have 1 to {MAX_TAG_LENGTH} characters without invisible ones.", "name"
                )
        return tags


class StrictSerializer(serializers.Serializer[Any]):
    """Request body that refuses unknown fields.

    A misspelt or forbidden field is never silently dropped.
    """

    def to_internal_value(self, data: Any) -> Any:
        known = {name for name, field in self.fields.items() if not field.read_only}
        unknown = sorted(set(data) - known) if isinstance(data, dict) else []
        if unknown:
            raise serializers.ValidationError(
                {name: [f"Is an unknown field. Known: {', '.join(sorted(known)) or 'none'}."] for name in unknown}
            )
        return super().to_internal_value(data)
