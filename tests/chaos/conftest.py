"""One running product for all tests of a module."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.chaos.disturbed import Disturbed
from tests.chaos.running import product


@pytest.fixture(scope="module")
def running_product() -> Iterator[Disturbed]:
    with product(nodes=1) as running, closing(Disturbed(running)) as disturbed:
        disturbed.history.remember_pods()
        yield disturbed


@pytest.fixture
def here(running_product: Disturbed) -> Iterator[Disturbed]:
    """Return the idle product; release all leases afterwards."""
    yield running_product
    running_product.tidy()
