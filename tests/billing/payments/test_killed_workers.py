"""A worker killed around the charge: the next one pays once."""

import os
import signal
import subprocess
import sys

import pytest

from billing.gateways.simulated import SimulatedGateway
from billing.models import Payment
from billing.services.payments import gateway_transactions, payment_collection
from tests.billing.payments.payable_invoices import (
    charged_amounts,
    create_final_invoice,
    payments_of,
    process_payment,
    reload_invoice,
    request_payment,
)
from tests.database import OwnDatabase

WORK = "import django; django.setup(); from billing import tasks; tasks.collect(*__import__('sys').argv[1:])"


def worker(database: OwnDatabase, gateway: str, payment: Payment) -> int:
    """Run the task as the worker in a process; return its exit."""
    env = os.environ | {
        "GPUBROKER_DATABASE_URL": database.worker_url,
        "GPUBROKER_PAYMENT_GATEWAY": gateway,
    }
    return subprocess.run([sys.executable, "-c", WORK, payment.pk, payment.tenant_id], env=env, timeout=60).returncode


@pytest.mark.parametrize(("death", "charged"), [("KillsBefore", []), ("KillsAfter", [200])])
@pytest.mark.deep
def test_a_worker_killed_at_the_gateway_leaves_one_charge_to_find(
    own_database: OwnDatabase, death: str, charged: list[int]
) -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    assert worker(own_database, f"tests.billing.payments.killed_callers.{death}", payment) == -signal.SIGKILL
    (waiting,) = payments_of(invoice)
    assert (waiting.status, waiting.attempts, charged_amounts(invoice)) == ("pending", 1, charged)
    assert waiting.due_at is not None
    assert payment_collection.PAYMENTS.due(now=waiting.due_at) == [("billing.collect", payment.pk, payment.tenant_id)]
    process_payment(payment, now=waiting.due_at + gateway_transactions.CLAIM_DURATION)
    assert (reload_invoice(invoice).status, charged_amounts(invoice), len(payments_of(invoice))) == ("paid", [200], 1)


@pytest.mark.deep
def test_a_worker_process_pays_under_its_own_login(own_database: OwnDatabase) -> None:
    invoice = create_final_invoice()
    through = f"{SimulatedGateway.__module__}.{SimulatedGateway.__qualname__}"
    assert worker(own_database, through, request_payment(invoice)) == 0
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])
