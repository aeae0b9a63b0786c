"""Fixtures of the scenarios. Nothing here imports Django before it is set up."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.world import Life


@pytest.fixture
def life(db: None) -> Iterator["Life"]:
    """Stop the clock and hear every hint."""
    from tests.world import alive

    with alive() as life:
        yield life
