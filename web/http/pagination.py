"""Cursor pagination: rows inserted between two pages neither repeat nor hide others."""

import base64
import binascii
import json
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Q, QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

DEFAULT_LIMIT, MAX_LIMIT = 50, 500
MAX_COUNT = 10_000  # counts stop here: this value means "this many or more"


class CursorPagePagination(BasePagination):
    """Cursor pagination as `{"items": [], "next_cursor": null, "total_estimate": n}` and a Link header."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request = request
        limit = self._limit(request.query_params.get("limit", str(DEFAULT_LIMIT)))
        sort = self._sort(request.query_params.get("sort"), getattr(view, "sorts", ("-id",)))
        column, falling = sort.lstrip("-"), sort.startswith("-")
        order = [sort] if column == "id" else [sort, "-id" if falling else "id"]
        self.total = queryset.order_by()[:MAX_COUNT].count()
        rows = queryset.order_by(*order)
        if cursor := request.query_params.get("cursor"):
            rows = self._after(rows, self._read(cursor, sort), column, "lt" if falling else "gt")
        try:
            page = list(rows[: limit + 1])
        except (ValueError, DjangoValidationError):
            raise ValidationError({"cursor": "Is not a cursor of this list."}) from None
        self.next_cursor = self._write(page[limit - 1], sort, column) if len(page) > limit else None
        return page[:limit]

    def get_paginated_response(self, data: Any) -> Response:
        page = {"items": data, "next_cursor": self.next_cursor, "total_estimate": self.total}
        response = Response(page)
        if self.next_cursor:
            query = {**self.request.query_params.dict(), "cursor": self.next_cursor}
            address = self.request.build_absolute_uri(f"{self.request.path}?{urlencode(query)}")
            response["Link"] = f'<{address}>; rel="next"'
        return response

    @staticmethod
    def _limit(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_LIMIT:
            raise ValidationError({"limit": f"Must be a whole number from 1 to {MAX_LIMIT}."})
        return int(text)

    @staticmethod
    def _sort(wanted: str | None, sorts: tuple[str, ...]) -> str:
        if wanted is not None and wanted not in sorts:
            raise ValidationError({"sort": f"Must be one of {', '.join(sorts)}."})
        return wanted or sorts[0]

    @staticmethod
    def _after(rows: QuerySet[Any], last: list[str], column: str, side: str) -> QuerySet[Any]:
        value, ident = last
        try:
            if column == "id":
                return rows.filter(**{f"id__{side}": ident})
            # The first, redundant condition lets PostgreSQL use an index.
            return rows.filter(**{f"{column}__{side}e": value}).filter(
                Q(**{f"{column}__{side}": value}) | Q(**{f"id__{side}": ident})
            )
        except (ValueError, DjangoValidationError):
            raise ValidationError({"cursor": "Is not a cursor of this list."}) from None

    @staticmethod
    def _write(row: Any, sort: str, column: str) -> str:
        value = getattr(row, column)
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        packed = json.dumps([sort, text, str(row.pk)], separators=(",", ":"))
        return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")

    @staticmethod
    def _read(cursor: str, sort: str) -> list[str]:
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (ValueError, binascii.Error, RecursionError):
            parts = None
        good = isinstance(parts, list) and len(parts) == 3 and all(isinstance(p, str) for p in parts)
        if not good or "\x00" in "".join(parts):
            raise ValidationError({"cursor": "Is not a cursor of this list."})
        if parts[0] != sort:
            raise ValidationError({"cursor": f"Belongs to a list sorted by {parts[0]}."})
        return [parts[1], parts[2]]

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": "limit",
                "in": "query",
                "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
            },
            {"name": "cursor", "in": "query", "schema": {"type": "string"}},
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["items", "next_cursor", "total_estimate"],
            "properties": {
                "items": schema,
                "next_cursor": {"type": ["string", "null"]},
                "total_estimate": {
                    "type": "integer",
                    "description": f"Exact below {MAX_COUNT:,}; this value means this number or more.",
                },
            },
        }
