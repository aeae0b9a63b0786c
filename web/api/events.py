"""API of lease events as a list.

The live stream of the same events is another process (config/asgi.py).
"""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from broker.services.reports import lease_events
from broker.services.reports.lease_events import EventPosition, InvalidPosition
from web.api.base_views import TenantViewSet, needs
from web.api.lease_serializers import EventOut, EventPage

DEFAULT_LIMIT, MAX_LIMIT = 100, 500
STREAM_PATH = "/api/v1/events/stream"


class EventStreamRenderer(BaseRenderer):
    """Media type of the live stream in content negotiation.

    A client that accepts it is redirected to the event process.
    """

    media_type = "text/event-stream"
    format = "stream"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        return JSONRenderer().render(data)


class EventViewSet(TenantViewSet):
    """Every transition of every lease you may see, oldest first, each exactly once."""

    serializer_class = EventOut
    renderer_classes = [JSONRenderer, EventStreamRenderer]
    pagination_class = None
    filter_backends = []
    parameters = frozenset({"cursor", "limit"})
    actions_needed = needs("leases.read", "list")

    @extend_schema(
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses={(200, "application/json"): EventPage, 307: None},
    )
    def list(self, request: Request) -> Response | HttpResponse:
        """Return events after `cursor`; the last event's id is the next cursor.

        With `Accept: text/event-stream` the response is the address of the live stream.
        """
        if request.accepted_renderer.media_type == EventStreamRenderer.media_type:
            query = request.META.get("QUERY_STRING", "")
            address = f"{settings.EVENTS_URL}{STREAM_PATH}" + (f"?{query}" if query else "")
            return HttpResponse(status=307, headers={"Location": address})
        cursor, tenant_id = request.query_params.get("cursor", ""), self.request.tenant.pk
        found = lease_events.events_after(
            self._position(cursor, tenant_id),
            tenant_id=tenant_id,
            within=self.request.roles.projects("leases.read"),
            limit=self._limit(request),
        )
        last = found[-1].id if found else cursor or None
        return Response({"items": [event.as_json() for event in found], "next_cursor": last})

    @staticmethod
    def _position(text: str, tenant_id: str) -> EventPosition:
        try:
            return lease_events.parse_event_id(text, tenant_id=tenant_id) if text else EventPosition()
        except InvalidPosition as error:
            raise ValidationError({"cursor": str(error)}) from None

    @staticmethod
    def _limit(request: Request) -> int:
        text = request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_LIMIT:
            raise ValidationError({"limit": f"Must be a whole number from 1 to {MAX_LIMIT}."})
        return int(text)
