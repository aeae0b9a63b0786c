"""Lease events as a list; the live stream of the same is another process (config/asgi.py)."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from broker.api.serializers import EventOut, EventPage
from broker.services import events
from broker.services.events import NoPosition, Position
from tenants.api.views import TenantViewSet

USUAL, MOST = 100, 500


class EventStream(BaseRenderer):
    """Stands for the stream in content negotiation; whoever wants it is sent to the process that has it."""

    media_type = "text/event-stream"
    format = "stream"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> Any:
        return JSONRenderer().render(data)


class Events(TenantViewSet):
    """Every step of every lease you may see, oldest first, each exactly once."""

    serializer_class = EventOut
    renderer_classes = [JSONRenderer, EventStream]
    pagination_class = None
    actions_needed = {"list": "leases.read"}

    @extend_schema(
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses={200: EventPage, 307: None},
    )
    def list(self, request: Request) -> Response | HttpResponse:
        """Return what happened after `cursor`; its last event's id is the next cursor.

        With `Accept: text/event-stream` the answer is the address of the live stream.
        """
        if request.accepted_renderer.media_type == EventStream.media_type:
            query = request.META.get("QUERY_STRING", "")
            address = f"{settings.EVENTS_URL}{request.path}" + (f"?{query}" if query else "")
            return HttpResponse(status=307, headers={"Location": address})
        asked = request.query_params.get("cursor", "")
        found = events.after(
            self._position(asked),
            tenant_id=self.request.tenant.pk,
            within=self.request.roles.projects("leases.read"),
            limit=self._limit(request),
        )
        last = str(found[-1].position) if found else asked or None
        return Response({"items": [event.as_json() for event in found], "next_cursor": last})

    @staticmethod
    def _position(text: str) -> Position:
        try:
            return events.read_position(text) if text else Position()
        except NoPosition as error:
            raise ValidationError({"cursor": str(error)}) from None

    @staticmethod
    def _limit(request: Request) -> int:
        text = request.query_params.get("limit", str(USUAL))
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST:
            raise ValidationError({"limit": f"Is a whole number from 1 to {MOST}."})
        return int(text)
