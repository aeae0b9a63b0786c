"""Filters and sort orders by whitelist.

No query parameter reaches the ORM unless a view declares it.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

COMMON_PARAMETERS = frozenset({"limit", "cursor", "sort", "q", "dry_run"})
MAX_VALUE_LENGTH, MAX_DIGITS = 300, 9


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

    def condition(self, name: str, value: str) -> Q:
        if len(value) > MAX_VALUE_LENGTH or "\x00" in value:
            raise ValidationError({name: f"May have at most {MAX_VALUE_LENGTH} characters without NUL."})
        if self.kind == "moment":
            return Q(**{self.lookup: self._moment(name, value)})
        if self.kind in ("flag", "flag_not"):
            if value not in ("true", "false"):
                raise ValidationError({name: "Must be true or false."})
            return Q(**{self.lookup: (value == "true") is (self.kind == "flag")})
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

    @staticmethod
    def _moment(name: str, value: str) -> Any:
        try:
            # A plus sign in a query string that was not escaped arrives as a space.
            moment = parse_datetime(value.replace(" ", "+", 1) if "T" in value else value)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise ValidationError({name: "Must be a time such as 2026-11-21T09:30:00Z."})
        return moment


class WhitelistFilterBackend(BaseFilterBackend):
    """Apply the view's `filters`, `search_in` and `sorts`; refuse unknown parameters."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        if getattr(view, "action", "list") != "list":
            return queryset
        filters: dict[str, QueryFilter] = view.filters
        known = COMMON_PARAMETERS | view.parameters | filters.keys()
        if unknown := request.query_params.keys() - known:
            raise ValidationError({name: f"Is unknown. Known: {', '.join(sorted(known))}." for name in sorted(unknown)})
        for name, rule in filters.items():
            if (value := request.query_params.get(name, "")) != "":
                queryset = queryset.filter(rule.condition(name, value))
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
        if len(view.sorts) > 1:
            names.append("sort")
        return [{"name": n, "in": "query", "required": False, "schema": self._schema(view, n)} for n in names]

    @staticmethod
    def _schema(view: Any, name: str) -> dict[str, Any]:
        if name == "sort":
            return {"type": "string", "enum": list(view.sorts)}
        rule = view.filters.get(name)
        return {"type": "string", **({"format": "date-time"} if rule and rule.kind == "moment" else {})}
