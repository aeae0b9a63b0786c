"""API of leases' logs: pages, download, and the live stream's address."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.logs.log_lines import LineSource, LogLevel, NumberedLine
from broker.models import Lease
from broker.services.logs import log_pages
from broker.services.logs.log_pages import LineFilter, LogState
from web.api.base_views import TenantViewSet, needs
from web.api.events import EventStreamRenderer
from web.http.downloads import log_response

DEFAULT_LIMIT, MAX_LIMIT = 500, 2000
MAX_SEARCH = 200
SOURCES, LEVELS = [each.value for each in LineSource], [each.value for each in LogLevel if each]


class LogLineOut(serializers.Serializer[Any]):
    """One line; its number never changes and is a cursor."""

    line_number = serializers.IntegerField()
    at = serializers.DateTimeField()
    source = serializers.ChoiceField(choices=SOURCES)  # type: ignore[assignment]  # DRF sets its own per instance
    level = serializers.ChoiceField(choices=["", *LEVELS], help_text="As far as the line states one.")
    text = serializers.CharField()


class LogStateOut(serializers.Serializer[LogState]):
    """What is kept of the log."""

    line_count = serializers.IntegerField(help_text="Lines that are kept.")
    removed_lines = serializers.IntegerField(help_text="Oldest lines that were deleted to bound its size.")
    size_bytes = serializers.IntegerField()
    fault = serializers.CharField(help_text="Why output cannot be read now; empty if it can.")
    completed_at = serializers.DateTimeField(allow_null=True, help_text="Since when the log is complete.")


class LogPageOut(serializers.Serializer[Any]):
    items = LogLineOut(many=True)
    next_cursor = serializers.CharField(help_text="Cursor of the lines after these, even if there are none yet.")
    has_more = serializers.BooleanField()
    log = LogStateOut()
    exit_code = serializers.IntegerField(allow_null=True)


class LeaseLogViewSet(TenantViewSet):
    """Output of a lease's program and what the platform did, live and after its end."""

    serializer_class = LogPageOut
    renderer_classes = [JSONRenderer, EventStreamRenderer]
    rows = Lease.objects.all()
    project_field = "project"
    action_parameters = {"retrieve": frozenset({"cursor", "limit", "tail", "search", "source", "level"})}
    actions_needed = needs("leases.read", "retrieve", "download")

    @extend_schema(
        parameters=[
            OpenApiParameter("cursor", str, description="Number of a line; the lines after it are returned."),
            OpenApiParameter("tail", int, description="Return the newest lines instead, at most so many."),
            OpenApiParameter("limit", int),
            OpenApiParameter("search", str, description="Text that the lines contain, in any case."),
            OpenApiParameter("source", str, enum=SOURCES),
            OpenApiParameter("level", str, enum=LEVELS),
        ],
        responses={(200, "application/json"): LogPageOut, 307: None},
    )
    def retrieve(self, request: Request, pk: str) -> Response | HttpResponse:
        """Return lines of the log, oldest first.

        With `Accept: text/event-stream` the response is the address of the live stream.
        """
        lease = self.get_object()
        if request.accepted_renderer.media_type == EventStreamRenderer.media_type:
            query = request.META.get("QUERY_STRING", "")
            address = f"{settings.EVENTS_URL}/api/v1/events/logs/{lease.pk}" + (f"?{query}" if query else "")
            return HttpResponse(status=307, headers={"Location": address})
        wanted = LineFilter(
            search=self._text("search"), source=self._choice("source", SOURCES), level=self._choice("level", LEVELS)
        )
        if tail := self._number("tail", 0, MAX_LIMIT):
            page = log_pages.read_last_lines(lease, limit=tail, wanted=wanted)
        else:
            limit = self._number("limit", DEFAULT_LIMIT, MAX_LIMIT)
            page = log_pages.read_lines_after(lease, self._number("cursor", 0, 2**62), limit=limit, wanted=wanted)
        log = log_pages.read_log_state(lease)
        return Response(
            {
                "items": [line_as_json(line) for line in page.lines],
                "next_cursor": str(page.next_after),
                "has_more": page.has_more,
                "log": LogStateOut(log).data,
                "exit_code": lease.exit_code,
            }
        )

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def download(self, request: Request, pk: str) -> HttpResponse:
        """Return every line that is kept as a text file."""
        return log_response(self.get_object())

    def _text(self, name: str) -> str:
        text = str(self.request.query_params.get(name, ""))
        if len(text) > MAX_SEARCH:
            raise ValidationError({name: f"Must have at most {MAX_SEARCH} characters."})
        return text

    def _choice(self, name: str, choices: list[str]) -> str:
        text = self._text(name)
        if text and text not in choices:
            raise ValidationError({name: f"Must be one of {', '.join(choices)}."})
        return text

    def _number(self, name: str, default: int, most: int) -> int:
        text = self.request.query_params.get(name, str(default))
        lowest = 0 if name == "cursor" else min(default, 1)
        if not (text.isascii() and text.isdigit() and len(text) <= 19 and lowest <= int(text) <= most):
            raise ValidationError({name: f"Must be a whole number from {lowest} to {most}."})
        return int(text)


def line_as_json(numbered: NumberedLine) -> dict[str, Any]:
    """Return a line as the API and the live stream show it."""
    line = numbered.line
    return {
        "line_number": numbered.number,
        "at": line.at.isoformat().replace("+00:00", "Z"),
        "source": line.source.value,
        "level": line.level.value,
        "text": line.text,
    }
