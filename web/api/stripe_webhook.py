"""Webhook of Stripe: stores the raw body of events with a valid signature."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from billing.services.payments.stripe import webhook_inbox
from ports import clock


class RawBodyParser(BaseParser):
    """Parser that leaves the body alone, since its signature covers every byte."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return {}


@extend_schema(exclude=True)
class StripeWebhook(APIView):
    """Receiver of Stripe's webhook: stores signed events, which workers process later."""

    authentication_classes = []
    permission_classes = []
    parser_classes = [RawBodyParser]

    def post(self, request: Request) -> Response:
        """Store an event, once however often it is sent."""
        webhook_inbox.receive_event(request._request.body, request.headers.get("Stripe-Signature", ""), now=clock.now())
        return Response(status=204)


urlpatterns = [path("stripe", StripeWebhook.as_view(), name="webhook-stripe")]
