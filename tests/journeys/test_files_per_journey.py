"""A traced request flow executes a limited number of source files."""

import pytest

from deploy.code_metrics import EXECUTED_FILE_LIMITS
from tests.journeys.journeys import JOURNEYS

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_journey_passes_at_most_its_goal_of_files(journey: str) -> None:
    passed = JOURNEYS[journey]().functions
    assert len(passed) <= EXECUTED_FILE_LIMITS[journey], "\n".join(passed)
