"""Readiness and row-level security of database logins."""

from contextlib import closing

import psycopg
import pytest
from django.db import connections

from config import health
from tests.database import OwnDatabase


def test_the_owner_login_is_reported_as_not_ready(own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "row_level_security" not in health.missing_requirements()
    monkeypatch.setattr(health, "connection", connections["owner"])
    assert "gpubroker_web" in health.missing_requirements()["row_level_security"]


def test_only_the_two_product_logins_are_subject_to_row_level_security(own_database: OwnDatabase) -> None:
    for url in (own_database.web_url, own_database.worker_url):
        with closing(psycopg.connect(url)) as login:
            assert login.execute(health.BYPASSES_RLS_SQL).fetchone() == (False,)
    with own_database.server.as_administrator(own_database.name) as boss:
        assert boss.execute(health.BYPASSES_RLS_SQL).fetchone() == (True,)
