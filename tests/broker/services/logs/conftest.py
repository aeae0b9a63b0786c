"""A lease whose output is played. Nothing here imports Django before it is set up."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from broker.models import Lease
    from tests.broker.services.logs.played_output import PlayedOutput
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def output(sim: "Simulation", monkeypatch: pytest.MonkeyPatch) -> "PlayedOutput":
    from broker.provisioners.simulated import SimulatedProvisioner
    from tests.broker.services.logs.played_output import PlayedOutput

    played = PlayedOutput(sim)
    monkeypatch.setattr(SimulatedProvisioner, "read_log", lambda _, *args, **named: played.read_log(*args, **named))
    return played


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests.simulation import create_gpus, create_tenant

    create_gpus(2)
    return create_tenant("Kestrel")


@pytest.fixture
def lease(sim: "Simulation", kestrel: "TenantContext", output: "PlayedOutput") -> "Lease":
    from tests.simulation import offering

    return sim.create_lease(kestrel, offering())
