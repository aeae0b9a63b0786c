"""What all tests on a real control plane share."""

import pytest

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the server longer than a worker would: with two control planes on two processors it may take long.

    Tests of how long we wait set that themselves, later than this.
    """
    from broker.provisioners.kubernetes.transport import Transport

    monkeypatch.setattr(Transport.within, "__defaults__", (PATIENCE_S,))
