"""Health probes and metrics."""

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client

from config import health
from tests.tenants import tenant_setup

pytestmark = pytest.mark.django_db


def test_the_liveness_check_passes_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ensure_connection", broken)
    assert Client().get("/health").status_code == 200


def broken(*args: object) -> None:
    raise OperationalError("connection refused")


def test_the_readiness_check_lists_missing_requirements() -> None:
    answer = Client().get("/ready")
    assert answer.status_code == 503  # the tests' queue address is not in use
    assert list(answer.json()["missing"]) == ["valkey"]


def test_the_readiness_check_passes_with_a_queue(valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from config.celery import app

    monkeypatch.setattr(health.outbox, "current_app", app.__class__("probe", broker=valkey_url, set_as_current=False))
    answer = Client().get("/ready")
    assert (answer.status_code, answer.json()["missing"]) == (200, {})


def test_the_readiness_check_fails_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ensure_connection", broken)
    monkeypatch.setattr(connection, "close", lambda: None)
    assert "database" in Client().get("/ready").json()["missing"]


def test_the_readiness_check_fails_before_the_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    health._migrated.cache_clear()
    monkeypatch.setattr(health.MigrationExecutor, "migration_plan", lambda self, targets: ["one"])
    assert "migrations" in Client().get("/ready").json()["missing"]
    monkeypatch.undo()
    assert "migrations" not in Client().get("/ready").json()["missing"]


def test_metrics_count_requests_by_route_without_tenant_names() -> None:
    delta = tenant_setup.create_tenant_with_owner("Zanzibar")
    tenant_setup.ApiClient(delta.token()).send("GET", f"projects/{delta.root.pk}")
    tenant_setup.ApiClient().get("/no/such/place-mulberry")
    text = Client().get("/metrics").content.decode()
    assert 'gpubroker_http_requests_total{method="GET",route="api-project-detail",status="200"}' in text
    assert 'route="none",status="404"' in text
    assert "gpubroker_outbox_pending" in text
    assert "mulberry" not in text
    assert "anzibar" not in text
    assert delta.tenant.pk not in text


@pytest.mark.parametrize(
    "visitor",
    [
        {"REMOTE_ADDR": "10.0.0.7"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"REMOTE_ADDR": "10.0.0.7", "HTTP_AUTHORIZATION": "Bearer wrong"},
    ],
)
def test_metrics_are_refused_without_the_token(visitor: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "METRICS_TOKEN", "right")
    assert Client().get("/metrics", **visitor).status_code == 403


def test_metrics_are_served_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "METRICS_TOKEN", "right")
    answer = Client().get("/metrics", REMOTE_ADDR="10.0.0.7", HTTP_AUTHORIZATION="Bearer right")
    assert answer.status_code == 200
