"""A tenant on four GPUs, and scripted API servers."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.broker.provisioners.kubernetes.scripted_server import StartServer
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests import simulation

    simulation.create_gpus(4)
    return simulation.create_tenant("Kestrel")


@pytest.fixture
def serve() -> "Iterator[StartServer]":
    """Start servers that answer from a script."""
    from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, ScriptedServer

    with ExitStack() as servers:
        yield lambda *script: servers.enter_context(ScriptedServer(*(script or (ScriptedAnswer(),))).up())
