"""Health, readiness and metrics endpoints for probes and Prometheus."""

import hmac
from functools import cache

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from config import metrics
from ports import outbox
from web.http.errors import problem_response
from web.http.middleware import is_proxied

LOOPBACK = ("127.0.0.1", "::1")
# Row-level security does not bind a superuser or the tables' owner: a wrong database URL would disable it silently.
BYPASSES_RLS_SQL = """
SELECT me.rolsuper OR me.rolbypassrls OR coalesce(pg_has_role(me.oid, tenants.relowner, 'MEMBER'), false)
  FROM pg_roles me LEFT JOIN pg_class tenants ON tenants.oid = to_regclass('public.tenants_tenant')
 WHERE me.rolname = current_user
"""


@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Return 200 while the process lives, without checking anything."""
    return JsonResponse({"status": "ok"})


@cache
def _migrated() -> bool:
    """Return whether every migration is applied.

    True is cached; False is not, since it raises.
    """
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise LookupError
    return True


def missing_requirements() -> dict[str, str]:
    """Return what this process lacks to serve requests, in words."""
    lacks = {}
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute(BYPASSES_RLS_SQL)
            if cursor.fetchone()[0]:
                lacks["row_level_security"] = (
                    "The login is superuser or owner; GPUBROKER_DATABASE_URL must name gpubroker_web."
                )
        _migrated()
    except DatabaseError:
        connection.close()
        lacks["database"] = "PostgreSQL does not answer; see its log and GPUBROKER_DATABASE_URL."
    except LookupError:
        lacks["migrations"] = "Migrations are not applied; run manage.py migrate --database owner."
    if not outbox.is_broker_reachable():
        lacks["valkey"] = "Valkey does not answer; see its log and GPUBROKER_BROKER_URL."
    return lacks


@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Return 200 if requests can be served, else 503 with what is missing."""
    lacks = missing_requirements()
    return JsonResponse({"ready": not lacks, "missing": lacks}, status=503 if lacks else 200)


def _may_read(request: HttpRequest) -> bool:
    token = settings.METRICS_TOKEN
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token and hmac.compare_digest(given.encode(), token.encode()):
        return True
    return request.META.get("REMOTE_ADDR") in LOOPBACK and not is_proxied(request)


@require_safe
def metrics_view(request: HttpRequest) -> HttpResponse:
    """Serve metrics to this host, or to holders of the metrics token."""
    if not _may_read(request):
        return problem_response(
            request,
            status=403,
            code="policy-denied",
            title="Metrics require authentication",
            detail="Metrics are served to this machine only, or with the metrics token.",
            fix="Set GPUBROKER_METRICS_TOKEN and send it as a bearer token.",
        )
    return HttpResponse(metrics.render_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")
