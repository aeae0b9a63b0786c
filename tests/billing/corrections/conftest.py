"""Payments go through a simulated gateway, hints go nowhere, and letters are kept."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield


@pytest.fixture
def letters() -> Iterator[list[tuple[str, str]]]:
    """Letters that went out: to whom, and subject with text."""
    from ports import mail

    sent: list[tuple[str, str]] = []
    with mail.carried_by(lambda to, subject, text: sent.append((to, f"{subject}\n{text}"))):
        yield sent
