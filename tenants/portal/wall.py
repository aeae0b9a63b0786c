"""One transaction a request, behind its tenant's wall, undone when the answer is a refusal."""

from collections.abc import Callable

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

# Answered without a database transaction of their own.
OPEN_PATHS = ("/static/", "/health", "/ready", "/metrics")


class TenantWall:
    """Open the request's transaction; authentication or the portal's session then names the tenant.

    An answer of 400 or more rolls back, so that a refusal leaves nothing behind.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(OPEN_PATHS):
            return self.get_response(request)
        with transaction.atomic():
            response = self.get_response(request)
            if isinstance(response, HttpResponse) and response.status_code >= 400:
                transaction.set_rollback(True)
            return response
