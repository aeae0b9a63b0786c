"""A worker's process is killed on either side of the charge; the next one finds the row and pays once."""

import os
import signal
import subprocess
import sys

import pytest

from billing.gateways.simulated import SimulatedGateway
from billing.models import Payment
from billing.services.moves import moving
from billing.services.payments import collecting
from tests.billing.payments.bills import bill, collect, fresh, pay, taken, tried
from tests.database import OwnDatabase

WORK = "import django; django.setup(); from billing import tasks; tasks.collect(*__import__('sys').argv[1:])"


def worker(database: OwnDatabase, gateway: str, payment: Payment) -> int:
    """Run the task in a process of its own, as the worker's login, and return how it ended."""
    env = os.environ | {
        "GPUBROKER_DATABASE_URL": database.worker_url,
        "GPUBROKER_PAYMENT_GATEWAY": gateway,
    }
    return subprocess.run(
        [sys.executable, "-c", WORK, payment.pk, payment.tenant_id], env=env, timeout=60
    ).returncode


@pytest.mark.parametrize(("death", "charged"), [("KillsBefore", []), ("KillsAfter", [200])])
def test_a_worker_killed_at_the_gateway_leaves_one_charge_to_find(
    own_database: OwnDatabase, death: str, charged: list[int]
) -> None:
    invoice = bill()
    payment = pay(invoice)
    assert worker(own_database, f"tests.billing.payments.deadly.{death}", payment) == -signal.SIGKILL
    (waiting,) = tried(invoice)
    assert (waiting.status, waiting.tries, taken(invoice)) == ("pending", 1, charged)
    assert waiting.due_at is not None
    assert collecting.due(now=waiting.due_at) == [("billing.collect", payment.pk, payment.tenant_id)]
    collect(payment, now=waiting.due_at + moving.CLAIM)
    assert (fresh(invoice).status, taken(invoice), len(tried(invoice))) == ("paid", [200], 1)


def test_a_worker_process_pays_under_its_own_login(own_database: OwnDatabase) -> None:
    invoice = bill()
    through = f"{SimulatedGateway.__module__}.{SimulatedGateway.__qualname__}"
    assert worker(own_database, through, pay(invoice)) == 0
    assert (fresh(invoice).status, taken(invoice)) == ("paid", [200])
