"""A registered cluster. Nothing here imports Django before it is set up."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker.models import Cluster


@pytest.fixture
def cluster(db: None, settings: Any) -> "Cluster":
    """Register an unreachable cluster."""
    from cryptography.fernet import Fernet

    from broker.services.clusters.registration import cluster_registration
    from tests.broker.services.clusters.kubeconfigs import KUBECONFIG
    from tests.simulation import NOW, OPERATOR

    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    return cluster_registration.register_cluster(
        name="east", region="eu", kubeconfig=KUBECONFIG, driver="device_plugin", actor=OPERATOR, now=NOW
    )
