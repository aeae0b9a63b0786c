"""Where Stripe tells us that something happened: the body as it came, its signature, and nothing else is believed."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.services.stripe import inbox
from ports import clock


class AsItCame(BaseParser):
    """Leaves the body alone: its signature is of every byte."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return {}


@extend_schema(exclude=True)
class StripeEvents(APIView):
    """The address of Stripe's webhook. It keeps what Stripe signed and answers; workers look at it afterwards."""

    authentication_classes = []
    permission_classes = []
    parser_classes = [AsItCame]

    def post(self, request: Request) -> Response:
        """Keep an event, once however often it comes."""
        inbox.receive(request._request.body, request.headers.get("Stripe-Signature", ""), now=clock.now())
        return Response(status=204)


urlpatterns = [path("stripe", StripeEvents.as_view(), name="webhook-stripe")]
