"""The chart, rendered once for all tests that only read it."""

import os

import pytest

from tests.chart.rendering import ADDRESS, FULL, Object, objects


@pytest.fixture(scope="session")
def rewrite() -> bool:
    """Return whether the golden files are to be rewritten."""
    return bool(os.environ.get("REWRITE_GOLDEN"))


@pytest.fixture(scope="session")
def defaults() -> list[Object]:
    """Return the objects of an installation that sets its address and nothing else."""
    return objects(ADDRESS)


@pytest.fixture(scope="session")
def full() -> list[Object]:
    """Return the objects of an installation that switches everything on."""
    return objects(FULL)


@pytest.fixture(params=["defaults", "full"])
def rendered(request: pytest.FixtureRequest) -> list[Object]:
    """Return the rendered objects of each installation in turn."""
    found: list[Object] = request.getfixturevalue(request.param)
    return found
