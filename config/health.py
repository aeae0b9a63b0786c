"""Is it alive, may it get requests, how is it doing: for probes and for Prometheus."""

import hmac
from functools import cache

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from config import metrics
from config.problems import problem_response
from config.requests import proxied
from ports import doorbell

LOOPBACK = ("127.0.0.1", "::1")
# No wall binds a superuser, and its owner may take it down: one wrong address of the database, and nobody would know.
UNWALLED = """
SELECT me.rolsuper OR me.rolbypassrls OR coalesce(pg_has_role(me.oid, tenants.relowner, 'MEMBER'), false)
  FROM pg_roles me LEFT JOIN pg_class tenants ON tenants.oid = to_regclass('public.tenants_tenant')
 WHERE me.rolname = current_user
"""


@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Answer as long as the process lives; nothing else is looked at."""
    return JsonResponse({"status": "ok"})


@cache
def _migrated() -> bool:
    """Tell whether every migration is applied; once true it stays so, and a False is not kept."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise LookupError
    return True


def missing() -> dict[str, str]:
    """Return what this process lacks to do its work, in words."""
    lacks = {}
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(UNWALLED)
            if cursor.fetchone()[0]:
                lacks["walls"] = (
                    "The login is superuser or owner; GPUBROKER_DATABASE_URL must name gpubroker_web."
                )
        _migrated()
    except DatabaseError:
        connection.close()
        lacks["database"] = "PostgreSQL does not answer; see its log and GPUBROKER_DATABASE_URL."
    except LookupError:
        lacks["migrations"] = "Migrations are not applied; run manage.py migrate --database owner."
    if not doorbell.reachable():
        lacks["valkey"] = "Valkey does not answer; see its log and GPUBROKER_BROKER_URL."
    return lacks


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 when requests can be served, else 503 with what is missing."""
    lacks = missing()
    return JsonResponse({"ready": not lacks, "missing": lacks}, status=503 if lacks else 200)


def _may_read(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token and hmac.compare_digest(given.encode(), token.encode()):
        return True
    return request.META.get("REMOTE_ADDR") in LOOPBACK and not proxied(request)


@require_safe
def figures(request: HttpRequest) -> HttpResponse:
    """Serve the figures to this machine, or to whoever has the token from the settings."""
    if not _may_read(request):
        return problem_response(
            request,
            status=403,
            code="policy-denied",
            title="Metrics are not for everybody",
            detail="They are served to this machine only, or with the metrics token.",
            fix="Set GPUBROKER_METRICS_TOKEN and send it as a bearer token.",
        )
    return HttpResponse(metrics.text(), content_type="text/plain; version=0.0.4; charset=utf-8")
