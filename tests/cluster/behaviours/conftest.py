"""The two worlds in which every behaviour is played, and the record by which their outcomes are compared."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.behaviours import outcomes
from tests.controlplane import binaries

if TYPE_CHECKING:
    from tests.cluster.behaviours.world import World
    from tests.world import Life


@pytest.fixture
def own_time(db: None) -> "Iterator[Life]":
    """Let time begin at the real one, and ids be real ones too: the cluster is shared, and remembers."""
    from ports import clock, doorbell
    from tests.world import Life

    with clock.standing_at(datetime.now(UTC).replace(microsecond=0)) as standing:
        made = Life(standing)
        with doorbell.heard_by(made.hear):
            yield made


# Where there is a control plane both are played in one run, for what happened in them is compared.
TOGETHER = [] if binaries.missing() else [pytest.mark.cluster]


@pytest.fixture(
    params=[
        pytest.param("simulated", marks=TOGETHER),
        pytest.param("real", marks=pytest.mark.cluster),
    ]
)
def world(request: pytest.FixtureRequest, own_time: "Life", settings: Any) -> "Iterator[World]":
    """Make a world, and once the behaviour was played to its end lay what happened beside the other world's."""
    made: World
    if request.param == "simulated":
        from tests.cluster.behaviours.simulated import SimulatedWorld

        settings.PROVISIONER = "tests.cluster.behaviours.simulated.Disturbed"
        made, clear = SimulatedWorld(own_time), lambda: None
    else:
        made, clear = _real(request, own_time, settings)
    failed = request.session.testsfailed
    try:
        yield made
        if request.session.testsfailed == failed:
            outcomes.compare(request.node, request.param, made.outcome())
    finally:
        clear()


def _real(request: pytest.FixtureRequest, life: "Life", settings: Any) -> Any:
    from cryptography.fernet import Fernet

    from broker.services import clusters
    from tests.cluster.behaviours.real import RealWorld
    from tests.cluster.installed import install
    from tests.cluster.stages import PLUGIN

    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    plane = request.getfixturevalue("control_plane")
    if not getattr(plane, "has_our_rules", False):
        install(plane.api, PLUGIN)
        plane.has_our_rules = True
    made = RealWorld(life, plane=plane, nodes=request.getfixturevalue("gpu_nodes"))

    def clear() -> None:
        made.clear()
        clusters._of_cluster.cache_clear()

    return made, clear
