"""The running product that attacks are tried on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

    from tests.attacks.running_product import RunningProduct


@pytest.fixture(scope="module")
def product(template_database: str, django_db_blocker: "DjangoDbBlocker") -> Iterator["RunningProduct"]:
    """Run the product's web and events processes over a database of their own."""
    import os

    from deploy.embedded import roles
    from tests import session
    from tests.attacks.running_product import run_product
    from tests.database import OwnDatabase, clone, pointed_at

    name = session.database_name(f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_attacked")
    server = clone(name)
    try:
        with (
            django_db_blocker.unblock(),
            pointed_at(name),
            run_product(OwnDatabase(name, server)) as running,
        ):
            yield running
    finally:
        roles.drop_database(server, name)
