"""Benchmark of POST /leases against a bare DRF POST with the same body and row.

Both are called over HTTP, on one keep-alive connection each to one worker of the product's own server,
alternately, so that other load on the machine affects both. The difference is all that makes a row a
lease: the token and its role, project, price and quota, the transition log, the outbox message, the
audit log, and the idempotency record.
"""

import json
import os
import subprocess
import sys
from datetime import timedelta
from http.client import HTTPConnection  # noqa: TID251  # the leanest client there is
from pathlib import Path
from socket import socket
from statistics import median
from time import perf_counter, sleep
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402
from django.urls import include, path  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.services.demo.seed import seed_prices  # noqa: E402
from broker.models import Lease, Offering  # noqa: E402
from broker.services.inventory import gpu_catalogue, hardware  # noqa: E402
from broker.services.inventory.hardware import SimulatedRack  # noqa: E402
from broker.services.leases.lease_requests import PLAIN_COLUMNS  # noqa: E402
from ports import clock, ids  # noqa: E402
from tenants.models import Quota, QuotaKind, ServiceAccount  # noqa: E402
from tenants.services import tenants, tokens  # noqa: E402
from tenants.services.actors import SYSTEM  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402
from web.api.lease_serializers import LeaseCreate, LeaseOut  # noqa: E402

ROUNDS, A_ROUND, WARM_UP = (2, 3, 2) if sys.argv[1:] == ["small"] else (21, 50, 100)
TENANT = os.environ.get("BENCH_TENANT", "")


class Bare(APIView):
    """Minimal POST: validate the body, insert the row, return it."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def post(self, request: Request) -> Response:
        body = LeaseCreate(data=request.data)
        body.is_valid(raise_exception=True)
        wanted, now = body.validated_data, clock.now()
        lease = Lease(
            tenant_id=TENANT,
            project_id=wanted.pop("project"),
            offering_id=wanted.pop("offering"),
            volume_id=wanted.pop("volume") or None,
            state_since=now.replace(microsecond=0),
            created_at=now,
            requested_by="bench",
            requested_by_label="bench",
            **{name: value for name, value in wanted.items() if name in PLAIN_COLUMNS},
        )
        lease.save(force_insert=True)
        return Response(LeaseOut(lease).data, status=201)


urlpatterns = [path("bench/bare", Bare.as_view()), path("", include("config.urls"))]
if TENANT:  # in the server: the bare POST writes a tenant's row too, but asks nobody whose it is
    settings.ROOT_URLCONF = "bench.house_api"
    settings.DATABASES["default"]["OPTIONS"]["options"] += f" -c app.tenant={TENANT}"
application = WSGIHandler()


def world(*, nodes: int = 8) -> tuple[str, str, dict[str, Any]]:
    """Create a fleet and a tenant with enough capacity; return tenant, token and body."""
    now = clock.now()
    gpu_catalogue.load_gpu_models()
    hardware.add_simulated_racks([SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=nodes)], now=now)
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.update(state="published")
    seed_prices.publish_list_prices(since=now - timedelta(hours=1), actor=SYSTEM, now=now)
    with tenant_scope(""):
        tenant, project = tenants.create(name="Bench", owner=None, actor=SYSTEM, now=now)
        Quota.objects.filter(kind=QuotaKind.UNITS).update(limit=10**12, soft_limit=10**12)
        machine = ServiceAccount.objects.create(tenant=tenant, name="bench", role="member", created_at=now)
        _, token = tokens.issue(
            tenant=tenant,
            name="bench",
            scopes=["leases:write", "projects:read"],
            expires_at=now + timedelta(days=1),
            actor=SYSTEM,
            now=now,
            service_account=machine,
        )
    offering = Offering.objects.filter(profile="1g.10gb", price_class="on_demand")[0]
    body = {"name": "fold-run-7", "project": project.pk, "offering": offering.pk, "max_duration_s": 3600}
    return tenant.pk, token, body


class Caller:
    """Keep-alive connection that posts the same body repeatedly and requires success."""

    def __init__(self, port: int, where: str, body: dict[str, Any], token: str) -> None:
        self.http, self.where, self.body = HTTPConnection("127.0.0.1", port), where, json.dumps(body)
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}

    def post(self) -> None:
        self.http.request("POST", self.where, self.body, {**self.headers, "Idempotency-Key": ids.new("key")})
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status not in (201, 202):
            raise RuntimeError(f"{self.where}: {answer.status} {text!r}")

    def timed(self) -> float:
        """Return the seconds per POST over one round."""
        begun = perf_counter()
        for _ in range(A_ROUND):
            self.post()
        return (perf_counter() - begun) / A_ROUND


def serve(tenant: str) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the product's server with one worker and wait until it responds."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "bench.house_api:application", "--bind", f"127.0.0.1:{port}"]
    command += ["--workers", "1", "--threads", "2", "--no-control-socket", "--log-level", "error"]
    command += ["--worker-class", "config.web_worker.BufferingWorker"]
    env = {**os.environ, "BENCH_TENANT": tenant, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    process = subprocess.Popen(command, env=env)
    for _ in range(200):
        sleep(0.1)
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        with socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
    raise RuntimeError("the server did not start within 20 s")


def main() -> None:
    figures = Figures("house")
    tenant, token, body = world()
    process, port = serve(tenant)
    try:
        bare, lease = (Caller(port, where, body, token) for where in ("/bench/bare", "/api/v1/leases"))
        for _ in range(WARM_UP):
            bare.post()
            lease.post()
        pairs = [(bare.timed(), lease.timed()) for _ in range(ROUNDS)]
    finally:
        process.terminate()
        process.wait(20)
    figures.report_rate(
        "lease_request",
        1 / median(each for _, each in pairs),
        baseline=1 / median(each for each, _ in pairs),
        at_least=0.5,
    )
    figures.exit_with_status()


if __name__ == "__main__":
    main()
