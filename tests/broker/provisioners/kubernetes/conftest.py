"""A cluster without a server, and a simulated clock."""

from typing import TYPE_CHECKING

import pytest

from ports import clock

if TYPE_CHECKING:
    from broker.models import Cluster


@pytest.fixture
def simulated_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace sleeping by advancing the clock."""
    moment = [clock.monotonic()]
    monkeypatch.setattr(clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(clock, "sleep", lambda seconds: moment.append(moment.pop() + seconds))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the requested sleeps instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr(clock, "sleep", slept.append)
    return slept


@pytest.fixture
def cluster(db: None) -> "Cluster":
    from broker.models import Cluster
    from tests.simulation import NOW

    return Cluster.objects.create(name="east", region="eu", provisioner="kubernetes", created_at=NOW)
