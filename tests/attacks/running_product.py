"""The product's web and events processes over a database of their own, with people and tokens who attack it."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.test import Client

from billing.services.catalogue import price_list
from ports import clock, ids
from tenants.domain.operator_scopes import OPERATOR_SCOPES
from tenants.models import User
from tenants.services import operator_tokens, rls, tokens
from tenants.services.actors import SYSTEM, Actor
from tests.chaos.running import free_ports
from tests.conftest import REQUEST_LIMITS
from tests.database import OwnDatabase
from tests.simulation import create_fleet, offering
from tests.tenants.tenant_setup import TenantWithOwner, create_tenant_with_owner

TOKEN_LIMIT = 500  # requests per minute: less than the default, so that reaching it takes seconds
PATIENCE_S, TIMEOUT_S = 60, 20
EURO = 10**9


@dataclass
class Answer:
    """A response of the running product."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)


@dataclass
class RunningProduct:
    """Where the product listens, and what attackers know."""

    port: int
    victim: TenantWithOwner
    attacker: User
    operator_token: str
    offering_id: str
    tokens: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, *, token: str = "", **headers: str) -> Answer:
        """Send a request, with a new key if it is a POST."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            named["Authorization"] = f"Bearer {token}"
        if method == "POST":
            named.setdefault("Idempotency-Key", ids.new("key"))
        if isinstance(body, dict):
            body, named["Content-Type"] = json.dumps(body), "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read().decode())
        finally:
            connection.close()

    def token(self, name: str, *, scopes: tuple[str, ...] = ("tenant:admin",), days: int = 1) -> str:
        """Return the token of the victim's owner of this name, made at first use."""
        if name not in self.tokens:
            now, tenant = clock.now(), self.victim.tenant
            with rls.tenant_scope(tenant.pk):
                _, self.tokens[name] = tokens.issue(
                    tenant=tenant,
                    name=name,
                    scopes=scopes,
                    expires_at=now + timedelta(days=days),
                    actor=SYSTEM,
                    now=now,
                    user_id=self.victim.owner.pk,
                )
        return self.tokens[name]

    def browser_of(self, user: User) -> dict[str, str]:
        """Return the headers of a user who is signed in to the portal."""
        client = Client()
        client.force_login(user)
        crumb = "x" * 32
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        origin = f"http://127.0.0.1:{self.port}"
        cookie = f"{settings.SESSION_COOKIE_NAME}={session}; csrftoken={crumb}"
        return {"Cookie": cookie, "X_CSRFToken": crumb, "Origin": origin, "Referer": f"{origin}/"}


def create_world(port: int) -> RunningProduct:
    """Create a fleet with prices, a tenant that is attacked, somebody else, and an operator's token."""
    now = clock.now()
    create_fleet(now=now)
    shape = offering()
    price_list.publish_price(offering=shape, currency="EUR", nano_per_hour=EURO, since=now, actor=SYSTEM, now=now)
    staff = User.objects.create_user("operator@example.org", is_staff=True)
    _, text = operator_tokens.issue_operator_token(
        staff,
        name="attacked",
        scopes=OPERATOR_SCOPES,
        expires_at=now + timedelta(days=1),
        actor=Actor("staff", staff.pk),
        now=now,
    )
    attacker = create_tenant_with_owner("Mallory").owner
    return RunningProduct(port, create_tenant_with_owner("Kestrel"), attacker, text, shape.pk)


@contextmanager
def run_product(database: OwnDatabase) -> Iterator[RunningProduct]:
    """Start the product over a database, and stop it."""
    port = free_ports()
    url = f"http://127.0.0.1:{port}"
    env = {name: value for name, value in os.environ.items() if name not in REQUEST_LIMITS} | {
        "GPUBROKER_DATABASE_URL": database.web_url,
        "GPUBROKER_PUBLIC_URL": url,
        "GPUBROKER_EVENTS_UPSTREAM": f"127.0.0.1:{port + 1}",
        "GPUBROKER_TOKEN_REQUESTS_PER_MINUTE": str(TOKEN_LIMIT),
        "GPUBROKER_OPERATORS_REQUIRE_MFA": "false",
    }
    web = ["gunicorn", "config.wsgi:application", "--bind", f"127.0.0.1:{port}", "--workers", "2", "--threads", "4"]
    web += ["--worker-class", "config.web_worker.BufferingWorker", "--preload", "--no-control-socket"]
    events = ["uvicorn", "config.asgi:application", "--host", "127.0.0.1", "--port", str(port + 1)]
    events += ["--no-access-log", "--log-level", "warning", "--ws", "websockets-sansio"]
    processes = [subprocess.Popen([sys.executable, "-m", *command], env=env) for command in (web, events)]
    try:
        product = create_world(port)
        _wait_until_answers(product, "/health", "/api/v1/events/stream")
        yield product
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(10)


def _wait_until_answers(product: RunningProduct, *paths: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            if all(product.send("GET", path).status in (200, 401) for path in paths):
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise RuntimeError("the product did not start")
        time.sleep(0.2)
