"""The simulated and the real cluster of every behaviour test."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.behaviours import outcomes
from tests.controlplane import binaries

if TYPE_CHECKING:
    from tests.cluster.behaviours.world import World
    from tests.simulation import Simulation


@pytest.fixture
def own_time(db: None) -> "Iterator[Simulation]":
    """Start from real time and real ids, for a shared cluster."""
    from ports import clock, outbox
    from tests.simulation import Simulation

    with clock.frozen_at(datetime.now(UTC).replace(microsecond=0)) as standing:
        made = Simulation(standing)
        with outbox.captured(made.record_message):
            yield made


# Where there is a control plane both are played in one run, for what happened in them is compared.
TOGETHER = [] if binaries.missing_binaries() else [pytest.mark.cluster]


@pytest.fixture(
    params=[
        pytest.param("simulated", marks=TOGETHER),
        pytest.param("real", marks=pytest.mark.cluster),
    ]
)
def world(request: pytest.FixtureRequest, own_time: "Simulation", settings: Any) -> "Iterator[World]":
    """Create the tested cluster, and compare the outcomes of both."""
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


def _real(request: pytest.FixtureRequest, sim: "Simulation", settings: Any) -> Any:
    from cryptography.fernet import Fernet

    from broker.services.inventory import cluster_provisioners
    from tests.cluster.behaviours.real import RealWorld
    from tests.cluster.installed import install
    from tests.cluster.stages import PLUGIN

    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    plane = request.getfixturevalue("control_plane")
    if not getattr(plane, "has_our_rules", False):
        install(plane.api, PLUGIN)
        plane.has_our_rules = True
    made = RealWorld(sim, plane=plane, nodes=request.getfixturevalue("gpu_nodes"))

    def clear() -> None:
        made.clear()
        cluster_provisioners._load_for_cluster.cache_clear()

    return made, clear
