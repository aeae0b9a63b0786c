"""ETag from a row's version: who changes something must have seen its newest state."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.services.refusals import Refused, Stale


class PreconditionRequired(Refused):
    code, status, title = "if-match-missing", 428, "Say which version you mean to change"


def etag(row: Any) -> str:
    """Return the ETag of a row that has a `version`."""
    return f'"{row.version}"'


class Etagged(viewsets.GenericViewSet[Any]):
    """Mixin of viewsets whose rows have a `version`: PATCH and DELETE need If-Match."""

    changing: ClassVar[tuple[str, ...]] = ("partial_update", "destroy")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Lock the row that is to change before its version is compared: two changes at once meet here."""
        rows = super().filter_queryset(queryset)
        return rows.select_for_update(of=("self",)) if self.action in self.changing else rows

    def get_object(self) -> Any:
        """Return the row; for a change it must be the version that If-Match names."""
        row = super().get_object()
        if self.action in self.changing:
            self.match(self.request, row)
        return row

    @staticmethod
    def match(request: Request, row: Any) -> None:
        """Refuse unless If-Match names the row's present version."""
        wanted = request.headers.get("If-Match")
        if not wanted:
            raise PreconditionRequired(
                "A change needs the header If-Match with the ETag you last read.",
                fix=f"Read it again and send If-Match: {etag(row)}.",
            )
        if wanted.strip() != "*" and etag(row) not in [part.strip() for part in wanted.split(",")]:
            raise Stale(
                f"You sent If-Match: {wanted[:60]}, it is now {etag(row)}.",
                fix="Read it again, look at what changed, and send your change with the new ETag.",
            )

    def tagged(self, row: Any, *, status: int = 200, **headers: str) -> Response:
        """Answer with the row and its ETag."""
        body = self.get_serializer(row).data
        return Response(body, status=status, headers={"ETag": etag(row), **headers})

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one."""
        return self.tagged(self.get_object())
