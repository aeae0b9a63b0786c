"""A tenant on a fleet whose slices cost a euro an hour, with the gates of a real installation."""

from typing import Any

import pytest


@pytest.fixture
def kestrel(settings: Any) -> Any:
    from config.operator import Operator
    from tests.billing.histories import EURO, LONG_AGO, reprice
    from tests.world import fleet, home, offering

    settings.LEASE_GATES = Operator.model_fields["lease_gates"].default
    fleet()
    reprice(offering(), EURO, since=LONG_AGO)
    return home("Kestrel")
