"""One transaction a request, behind its tenant's wall, undone when the answer is a refusal."""

from collections.abc import Callable

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from tenants.portal import refused
from tenants.services.refusals import Refused
from tenants.services.walls import enter_tenant

# Answered without a database transaction of their own; the last asks another server who somebody is (company.py).
OPEN_PATHS = ("/static/", "/health", "/ready", "/metrics", "/account/company/oidc/")


class TenantWall:
    """Open the request's transaction; authentication or the portal's session then names the tenant.

    An answer of 400 or more rolls back, so that a refusal leaves nothing behind.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(OPEN_PATHS):
            return self.get_response(request)
        if connection.in_atomic_block:
            enter_tenant(
                ""
            )  # only in a test: an outer transaction may still be in the tenant of the last one
        with transaction.atomic():
            response = self.get_response(request)
            if isinstance(response, HttpResponse) and response.status_code >= 400:
                transaction.set_rollback(True)
        refused.note(request, response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Turn a page's refusal into the error page that says what happened, why, and what next."""
        if not isinstance(exception, Refused):
            return None
        refused.because(request, exception.detail)
        told = {
            "status": exception.status,
            "title": exception.title,
            "detail": exception.detail,
            "fix": exception.fix.text,
            "request_id": getattr(request, "id", ""),
        }
        return render(request, "errors/page.html", told, status=exception.status)
