"""A browser, and the portal that it looks at."""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from tests.browser.portal import Portal

expect.set_options(timeout=60_000)  # a busy machine is not a failure
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests; each test opens a context of its own."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # playwright keeps a loop in this thread
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


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
