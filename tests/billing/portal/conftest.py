"""The desk that every test of the portal sits at."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.billing.portal.desks import Desk


@pytest.fixture
def desk(db: None) -> Iterator["Desk"]:
    from tests.billing.portal.desks import opened  # Django is set up by now

    with opened() as made:
        yield made
