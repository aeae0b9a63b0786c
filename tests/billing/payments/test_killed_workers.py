"""Payment workers killed around the charge."""

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


def run_worker(database: OwnDatabase, gateway: str, payment: Payment) -> int:
    """Run the task in a worker process; return its exit code."""
    env = os.environ | {
        "GPUBROKER_DATABASE_URL": database.worker_url,
        "GPUBROKER_PAYMENT_GATEWAY": gateway,
    }
    return subprocess.run([sys.executable, "-c", WORK, payment.pk, payment.tenant_id], env=env, timeout=60).returncode


@pytest.mark.parametrize(("death", "charged"), [("KillsBefore", []), ("KillsAfter", [200])])
@pytest.mark.deep
def test_a_worker_killed_during_the_charge_leaves_one_recoverable_charge(
    own_database: OwnDatabase, death: str, charged: list[int]
) -> None:
    invoice = create_final_invoice()
    payment = request_payment(invoice)
    assert run_worker(own_database, f"tests.billing.payments.killed_callers.{death}", payment) == -signal.SIGKILL
    (waiting,) = payments_of(invoice)
    assert (waiting.status, waiting.attempts, charged_amounts(invoice)) == ("pending", 1, charged)
    assert waiting.due_at is not None
    assert payment_collection.PAYMENTS.due(now=waiting.due_at) == [("billing.collect", payment.pk, payment.tenant_id)]
    process_payment(payment, now=waiting.due_at + gateway_transactions.CLAIM_DURATION)
    assert (reload_invoice(invoice).status, charged_amounts(invoice), len(payments_of(invoice))) == ("paid", [200], 1)


@pytest.mark.deep
def test_a_worker_process_collects_a_payment_with_its_own_database_login(own_database: OwnDatabase) -> None:
    invoice = create_final_invoice()
    through = f"{SimulatedGateway.__module__}.{SimulatedGateway.__qualname__}"
    assert run_worker(own_database, through, request_payment(invoice)) == 0
    assert (reload_invoice(invoice).status, charged_amounts(invoice)) == ("paid", [200])
