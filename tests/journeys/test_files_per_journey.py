"""A journey passes through a limited number of files."""

import pytest

from deploy.code_metrics import JOURNEY_GOALS
from tests.journeys.journeys import JOURNEYS

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_journey_passes_at_most_its_goal_of_files(journey: str) -> None:
    passed = JOURNEYS[journey]().functions
    assert len(passed) <= JOURNEY_GOALS[journey], "\n".join(passed)
