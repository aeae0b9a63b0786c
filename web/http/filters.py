"""Filters and sort orders by whitelist.

No query parameter reaches the ORM unless a view declares it.
"""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

from web.http.query_parameters import FLAG_DESCRIPTION, MOMENT_DESCRIPTION, parse_flag, parse_moment

MAX_VALUE_LENGTH, MAX_DIGITS = 300, 9
DEFAULT_ZONE = ZoneInfo("UTC")


@dataclass(frozen=True)
class QueryFilter:
    """Query parameter: the ORM look-up it maps to, and the type of its value."""

    lookup: str
    kind: str = (
        # text (several, by comma), moment, flag, flag_not (true: the look-up is false), number,
        # below (one of a path)
        "text"
    )
    choices: tuple[str, ...] = ()

    def condition(self, name: str, value: str, zone: ZoneInfo = DEFAULT_ZONE) -> Q:
        """Return a filter's condition; times without a zone are in `zone`."""
        if len(value) > MAX_VALUE_LENGTH or "\x00" in value:
            raise ValidationError({name: f"May have at most {MAX_VALUE_LENGTH} characters without NUL."})
        if self.kind == "moment":
            return Q(**{self.lookup: parse_moment(name, value, zone)})
        if self.kind in ("flag", "flag_not"):
            return Q(**{self.lookup: parse_flag(name, value) is (self.kind == "flag")})
        if self.kind == "number":
            if not value.isascii() or not value.isdigit() or len(value) > MAX_DIGITS:
                raise ValidationError({name: f"Must be a whole number of at most {MAX_DIGITS} digits."})
            return Q(**{self.lookup: int(value)})
        parts = value.split(",")
        if self.kind == "below":
            return Q(**{f"{self.lookup}__overlap": parts})
        if self.choices and (unknown := set(parts) - set(self.choices)):
            raise ValidationError({name: f"{', '.join(sorted(unknown))} is not one of {', '.join(self.choices)}."})
        return Q(**{f"{self.lookup}__in": parts})

    def describe(self) -> dict[str, Any]:
        """Return the schema and description of the parameter, as OpenAPI has them."""
        if self.kind == "moment":
            return {"schema": {"type": "string", "format": "date-time"}, "description": MOMENT_DESCRIPTION}
        if self.kind in ("flag", "flag_not"):
            return {"schema": {"type": "boolean"}, "description": FLAG_DESCRIPTION}
        if self.kind == "number":
            return {"schema": {"type": "integer", "minimum": 0, "maximum": 10**MAX_DIGITS - 1}}
        each = {"type": "string", **({"enum": list(self.choices)} if self.choices else {})}
        return {
            "schema": {"type": "array", "items": each},
            "style": "form",
            "explode": False,
            "description": "One or several, separated by commas.",
        }


class WhitelistFilterBackend(BaseFilterBackend):
    """Apply the view's `filters` and `search_in` to its list."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        if getattr(view, "action", "list") != "list":
            return queryset
        filters: dict[str, QueryFilter] = view.filters
        for name, rule in filters.items():
            if (value := request.query_params.get(name)) is not None:
                queryset = queryset.filter(rule.condition(name, value, view.zone))
        return self._search(request, queryset, view)

    def _search(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        words = request.query_params.get("q", "")
        if not words or not view.search_in:
            return queryset
        if len(words) > MAX_VALUE_LENGTH or "\x00" in words:
            raise ValidationError({"q": f"May have at most {MAX_VALUE_LENGTH} characters without NUL."})
        found = Q()
        for field in view.search_in:
            found |= Q(**{f"{field}__icontains": words})
        return queryset.filter(found)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        names = [*view.filters, *(("q",) if view.search_in else ()), *sorted(view.parameters)]
        if view.pagination_class:
            names.append("sort")
        return [{"name": n, "in": "query", "required": False, **self._description(view, n)} for n in names]

    @staticmethod
    def _description(view: Any, name: str) -> dict[str, Any]:
        if name == "sort":
            return {"schema": {"type": "string", "enum": list(view.sorts)}}
        rule: QueryFilter | None = view.filters.get(name)
        return rule.describe() if rule else {"schema": {"type": "string"}}
