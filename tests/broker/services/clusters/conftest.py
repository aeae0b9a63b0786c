"""A tenant on two GPUs, and an agent of a registered cluster."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker.services.clusters.agent.cluster_agent import ClusterAgent
    from tests.simulation import Simulation, TenantContext


@pytest.fixture
def agent(sim: "Simulation", settings: Any) -> "Iterator[ClusterAgent]":
    """Register a cluster and return its agent."""
    from cryptography.fernet import Fernet
    from django.db import connections

    from broker.services.clusters.agent.cluster_agent import ClusterAgent
    from broker.services.clusters.registration import cluster_registration
    from broker.services.inventory import gpu_catalogue
    from tests.broker.services.clusters.kubeconfigs import AGENT_KUBECONFIG
    from tests.simulation import OPERATOR

    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    gpu_catalogue.load_gpu_models()
    joined = cluster_registration.register_cluster(
        name="east",
        region="eu-north",
        kubeconfig=AGENT_KUBECONFIG,
        driver="device_plugin",
        actor=OPERATOR,
        now=sim.now,
    )
    yield ClusterAgent(joined)
    with connections["default"].cursor() as cursor:  # a lead lasts as long as its session, and that is the next test's
        cursor.execute("SELECT pg_advisory_unlock_all()")


@pytest.fixture
def kestrel(sim: "Simulation") -> "TenantContext":
    from tests.simulation import create_gpus, create_tenant

    create_gpus(2)
    return create_tenant()


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Stop the clock of drift repair, except for the seconds added here."""
    from broker.services.clusters import drift_repair_queue

    passed = [5000.0]
    monkeypatch.setattr(drift_repair_queue, "clock", SimpleNamespace(monotonic=lambda: sum(passed)))
    return passed
