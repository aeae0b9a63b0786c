"""What the operators' tests start from: one node with four cards, everything on sale, and a tenant."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.world import Home, Life


@pytest.fixture
def kestrel(life: "Life") -> "Home":
    from tests import world

    world.cards(4)
    return world.home("Kestrel")
