"""Test databases: migrated once, cloned per worker and test."""

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from deploy.embedded import roles
from deploy.embedded.roles import OWNER, WEB, WORKER, Server
from tests import postgres_server, session

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

PATIENCE_S = 120
_numbers = itertools.count()


@dataclass(frozen=True)
class OwnDatabase:
    """A test's own database, with real commits, for threads and processes."""

    name: str
    server: Server

    @property
    def web_url(self) -> str:
        return self.server.login(WEB, self.name)

    @property
    def worker_url(self) -> str:
        return self.server.login(WORKER, self.name)

    @property
    def owner_url(self) -> str:
        return self.server.login(OWNER, self.name)


@contextmanager
def pointed_at(name: str) -> Iterator[None]:
    """Let both aliases, in this thread and in new ones, speak to another database."""
    from django.db import connections

    before = {alias: connections.settings[alias]["NAME"] for alias in connections}
    try:
        _point(dict.fromkeys(before, name))
        yield
    finally:
        _point(before)


def _point(names: dict[str, str]) -> None:
    from django.db import connections

    for alias, name in names.items():
        connections[alias].close()
        # The one dict that this thread's connection and every later one read.
        connections.settings[alias]["NAME"] = name
        connections[alias].settings_dict["NAME"] = name


@contextmanager
def logged_in_as(role: str) -> Iterator[None]:
    """Let the default connection log in as a worker."""
    from django.db import connections

    settings, server = connections.settings["default"], postgres_server.server()
    before = {name: settings[name] for name in ("USER", "PASSWORD")}
    try:
        _log_in({"USER": role, "PASSWORD": server.password(role)})
        yield
    finally:
        _log_in(before)


def _log_in(who: dict[str, str]) -> None:
    from django.db import connections

    connections["default"].close()
    connections.settings["default"].update(who)
    connections["default"].settings_dict.update(who)


def clone(name: str, *, template: str = "") -> Server:
    """Make a database from the migrated template, or from another one."""
    server = postgres_server.server()
    with postgres_server.exclusive():  # PostgreSQL copies a template only while nobody else does
        roles.clone_database(server, name, template=template or postgres_server.template_name())
    return server


@pytest.fixture(scope="session")
def template_database(django_db_blocker: "DjangoDbBlocker") -> str:
    """Migrate one database as its owner, unless an earlier session or another worker did."""
    from django.core.management import call_command

    postgres_server.start()
    have_patience()
    server, name = postgres_server.server(), postgres_server.template_name()
    with postgres_server.exclusive():
        if roles.read_comment(server, name) == "ready":
            return name
        roles.drop_database(server, name)
        roles.prepare_database(server, name)
        with django_db_blocker.unblock(), pointed_at(name):
            call_command("migrate", database="owner", verbosity=0, interactive=False)
        roles.write_comment(server, name, "ready")
    return name


def have_patience() -> None:
    """Allow long waits for locks on busy machines.

    How long the product waits before it answers "busy" is tested where a test sets it.
    """
    from django.db import connections

    for alias in connections:
        options = connections.settings[alias]["OPTIONS"]
        for name in ("lock_timeout", "statement_timeout"):
            options["options"] = re.sub(rf"{name}=\d+s", f"{name}={PATIENCE_S}s", options["options"])
        connections[alias].close()


def read_the_clock_once() -> None:
    """Read the database's time early, outside of counted queries."""
    from ports import clock

    clock.RESYNC_AFTER_S = 24 * 3600.0
    clock.now()


@pytest.fixture(scope="session")
def django_db_setup(template_database: str, django_db_blocker: "DjangoDbBlocker") -> Iterator[None]:
    """Give this worker its database clone, with web and owner logins."""
    name = worker_database()
    server = clone(name)
    with django_db_blocker.unblock():
        read_the_clock_once()
    yield
    from django.db import connections

    for alias in connections:
        connections[alias].close()
    if postgres_server.given_server():  # our own cleans up after the session
        roles.drop_database(server, name)


@pytest.fixture
def own_database(
    template_database: str, request: pytest.FixtureRequest, django_db_blocker: "DjangoDbBlocker"
) -> Iterator[OwnDatabase]:
    """Give a test its own database with real commits."""
    if request.node.get_closest_marker("django_db"):
        pytest.fail("own_database and django_db exclude each other: the mark would keep its transaction open")
    name = session.database_name(f"{os.environ.get('PYTEST_XDIST_WORKER', 'own')}_{next(_numbers)}")
    server = clone(name)
    try:
        with django_db_blocker.unblock(), pointed_at(name):
            yield OwnDatabase(name, server)
    finally:
        roles.drop_database(server, name)


@pytest.fixture
def transactional_db() -> None:
    """Refuse what would empty tables: append-only tables cannot be, and a clone is quicker."""
    pytest.fail("Tests that commit take own_database; nothing here is ever truncated.")


def worker_database() -> str:
    """Name this worker's database."""
    return session.database_name(os.environ.get("PYTEST_XDIST_WORKER", "main"))
