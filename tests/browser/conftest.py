"""Fixtures: a browser and a portal."""

import itertools
import os
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from tests.browser.portal import Portal

NUMBERS = itertools.count()
expect.set_options(timeout=60_000)  # a busy machine is not a failure


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests; each test opens a context of its own."""
    from tests.browser.playing import start_chromium

    with start_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def database_with_history(
    template_database: str, django_db_blocker: "DjangoDbBlocker"
) -> Iterator[tuple[str, "Portal"]]:
    """Create a tenant with history once per worker."""
    from deploy.embedded import roles
    from tests import session
    from tests.browser.portal import create_portal_data
    from tests.database import clone, pointed_at

    name = session.database_name(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_peopled")
    server = clone(name)
    try:
        with django_db_blocker.unblock(), pointed_at(name):
            portal = create_portal_data()
        yield name, portal
    finally:
        roles.drop_database(server, name)


@pytest.fixture(scope="module")
def portal(database_with_history: tuple[str, "Portal"], django_db_blocker: "DjangoDbBlocker") -> Iterator["Portal"]:
    """Serve the portal over a database with a tenant's history."""
    from deploy.embedded import roles
    from tests import session
    from tests.browser.portal import serve_portal
    from tests.database import clone, pointed_at

    template, peopled = database_with_history
    name = session.database_name(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(NUMBERS)}_portal")
    server = clone(name, template=template)
    try:
        with django_db_blocker.unblock(), pointed_at(name), serve_portal(deepcopy(peopled)) as standing:
            yield standing
    finally:
        roles.drop_database(server, name)
