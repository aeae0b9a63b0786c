"""Stripe's own mock, which checks requests against Stripe's API description."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.controlplane import binaries

if TYPE_CHECKING:
    from tests.stripemock.beside import Beside

PATIENCE_S = 30


@pytest.fixture(scope="session")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start stripe-mock on a Unix socket, and return its address."""
    program = binaries.find_binary("stripe-mock")
    assert program is not None
    address = tmp_path_factory.mktemp("stripe") / "mock"
    process = subprocess.Popen([program, "-http-unix", address], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "Listening" in line:
            break
    try:
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


@pytest.fixture(autouse=True, scope="module")
def _worker(template_database: str) -> Iterator[None]:
    """Use the worker's database role, because only workers call Stripe."""
    from deploy.embedded.roles import WORKER
    from tests.database import logged_in_as

    with logged_in_as(WORKER):
        yield


@pytest.fixture
def beside(mock: Path) -> "Iterator[Beside]":
    """Send the gateway's requests to the fake Stripe and to stripe-mock."""
    from django.test import override_settings

    from billing.gateways.stripe.gateway import StripeGateway
    from ports import payments
    from tests.billing.gateways.transports import use_transport
    from tests.billing.payments.payable_invoices import captured_messages
    from tests.fakestripe.server import ACCOUNT, KEY
    from tests.stripemock.beside import Beside

    made = Beside(mock)
    set_ = {"STRIPE_SECRET_KEY": KEY, "STRIPE_ACCOUNT": ACCOUNT, "STRIPE_CALLS_PER_S": 10**6}
    with (
        override_settings(**set_),
        use_transport(made),
        payments.using_gateway(StripeGateway()),
        captured_messages(),
    ):
        yield made
