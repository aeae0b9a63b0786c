"""Gateway calls with the database rights of a worker."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _worker(template_database: str) -> Iterator[None]:
    """Workers call Stripe; the web role may not write what is sent there."""
    from deploy.embedded.roles import WORKER
    from tests.database import logged_in_as

    with logged_in_as(WORKER):
        yield
