"""A browser, and the portal that it looks at."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from tests.browser.portal import Portal

expect.set_options(timeout=60_000)  # a busy machine is not a failure


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests; each test opens a context of its own."""
    from tests.browser.playing import playing

    with playing() as browser:
        yield browser


@pytest.fixture(scope="module")
def portal(template_database: str, django_db_blocker: "DjangoDbBlocker") -> Iterator["Portal"]:
    """The portal, served over a database of its own with a tenant that has a past."""
    from deploy.embedded import roles
    from tests import ground
    from tests.browser.portal import served
    from tests.database import clone, pointed_at

    name = ground.database_name(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_portal_{os.getpid()}")
    server = clone(name)
    try:
        with django_db_blocker.unblock(), pointed_at(name), served() as standing:
            yield standing
    finally:
        roles.drop_database(server, name)
