"""Shapes of values that many serializers share. Shape only: whether a value is allowed is a service's word."""

from typing import Any

from rest_framework import serializers

from tenants.domain.text import NAME_LENGTH, has_control

TAGS, TAG_LENGTH = 20, 60


class Name(serializers.CharField):
    """A name people give: one line, at most 120 characters, nothing invisible."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("max_length", NAME_LENGTH)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text = str(super().to_internal_value(data))
        if has_control(text):
            raise serializers.ValidationError("May hold no control or invisible characters.", "control")
        return text


class Tags(serializers.DictField):
    """A small map of words: `{"team": "nlp"}`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Name(max_length=TAG_LENGTH, allow_blank=True), **options)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        tags: dict[str, Any] = super().to_internal_value(data)
        if len(tags) > TAGS:
            raise serializers.ValidationError(f"May hold at most {TAGS} tags.", "too_many")
        for name in tags:
            if not 1 <= len(name) <= TAG_LENGTH or has_control(name):
                raise serializers.ValidationError(
                    f"A tag's name has 1 to {TAG_LENGTH} characters, none of them invisible.", "name"
                )
        return tags


class Strict(serializers.Serializer[Any]):
    """A body whose unknown fields are refused: a misspelt or forbidden field is never silently dropped."""

    def to_internal_value(self, data: Any) -> Any:
        known = {name for name, field in self.fields.items() if not field.read_only}
        unknown = sorted(set(data) - known) if isinstance(data, dict) else []
        if unknown:
            raise serializers.ValidationError(
                {
                    name: [f"Is not a field here; known are {', '.join(sorted(known)) or 'none'}."]
                    for name in unknown
                }
            )
        return super().to_internal_value(data)
