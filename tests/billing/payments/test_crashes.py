"""Charges of an invoice after crashes and gateway faults.

The worker is killed before any SQL statement, its own or the gateway's; responses are lost, late, declined or never
come; messages are lost or doubled. Then the faults end, and the invoice is paid by one charge.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from billing.gateways.simulated import GatewayFault
from billing.models import Invoice
from billing.services.payments import payment_collection, payment_creation
from billing.services.payments.payment_creation import NotPayable
from tests.billing.payments.payable_invoices import (
    NOW,
    charged_amounts,
    create_final_invoice,
    fail_next_charges,
    payments_of,
    reload_invoice,
    request_payment,
    sweep_payments,
)

pytestmark = pytest.mark.django_db
ENOUGH = 30  # statements; a step makes fewer
BORDERS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


class Killed(BaseException):
    """Simulated kill of the worker; nothing after it runs."""


class KillBeforeStatement:
    """Raises Killed before the n-th SQL statement; None never kills."""

    def __init__(self, at: int | None) -> None:
        self.at, self.made = at, 0

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith(BORDERS):  # undone as PostgreSQL undoes what a dead connection began
            return execute(sql, *rest)
        if self.made == self.at:
            raise Killed
        self.made += 1
        return execute(sql, *rest)


def run_until_killed(act: Callable[[], Any], *, at: int | None) -> int:
    """Run a function, kill it before its n-th SQL statement; return how many ran."""
    death = KillBeforeStatement(at)
    with suppress(Killed), connection.execute_wrapper(death):
        act()
    return death.made


def assert_never_overcharged(invoice: Invoice) -> None:
    """Assert that no more than the total was charged; holds at any time."""
    charged, now = charged_amounts(invoice), reload_invoice(invoice)
    assert charged in ([], [now.total]), charged
    succeeded = [each for each in payments_of(invoice) if each.status == "succeeded"]
    assert len(succeeded) == (now.status == "paid")
    if now.status == "paid":
        assert charged == [now.total]


def assert_settles_paid_once(invoice: Invoice, now: datetime) -> None:
    """Run without faults until nothing is pending; assert that it is paid once."""
    fail_next_charges(invoice)
    for _ in range(4):
        now += timedelta(days=1, hours=2)
        if any(each.status == "stuck" for each in payments_of(invoice)):
            click_pay(invoice, now)  # a person who was notified
        sweep_payments(now)
    assert reload_invoice(invoice).status == "paid"
    assert charged_amounts(invoice) == [invoice.total]
    assert [each.status for each in payments_of(invoice)].count("succeeded") == 1


def process_all_payments(invoice: Invoice, now: datetime) -> None:
    """Process every payment, as a duplicate message makes a worker do."""
    for payment in payments_of(invoice):
        payment_collection.PAYMENTS.collect(payment.pk, payment.tenant_id, now=now)


def click_pay(invoice: Invoice, now: datetime) -> None:
    with suppress(NotPayable):
        request_payment(invoice, now=now)


ACTS = {"sweep": lambda _, now: sweep_payments(now), "process": process_all_payments, "pay": click_pay}
Step = tuple[str, int | None, int]  # what happens, before which statement its worker is killed, seconds until then
STEPS = st.tuples(
    st.sampled_from(sorted(ACTS)),
    st.one_of(st.none(), st.integers(0, ENOUGH)),
    st.sampled_from([0, 1, 5, 40, 70, 3700, 90_000]),
)
FAULTS = st.lists(st.sampled_from(list(GatewayFault)), max_size=6)


@pytest.mark.deep
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=12), faults=FAULTS)
def test_after_random_crashes_and_faults_an_invoice_is_charged_exactly_once(
    steps: list[Step], faults: list[GatewayFault]
) -> None:
    with transaction.atomic():
        invoice, now = create_final_invoice(), NOW
        fail_next_charges(invoice, *faults)
        for what, death, seconds in steps:
            now += timedelta(seconds=seconds)
            run_until_killed(partial(ACTS[what], invoice, now), at=death)
            assert_never_overcharged(invoice)
        assert_settles_paid_once(invoice, now)
        transaction.set_rollback(True)


@pytest.mark.deep
@pytest.mark.parametrize("first", list(GatewayFault))
def test_a_crash_before_any_statement_of_a_collection_charges_once(first: GatewayFault) -> None:
    opener, at, made = create_final_invoice(), 0, 1
    request_payment(opener)
    process_all_payments(opener, NOW)  # the first of all opens the platform's account, by statements of its own
    while at < made:
        with transaction.atomic():
            invoice, alive = create_final_invoice(), create_final_invoice()
            for each in (invoice, alive):
                fail_next_charges(each, first)
                request_payment(each)
            made = run_until_killed(partial(process_all_payments, alive, NOW), at=None)
            assert run_until_killed(partial(process_all_payments, invoice, NOW), at=at) == at
            assert_never_overcharged(invoice)
            assert_settles_paid_once(invoice, NOW)
            transaction.set_rollback(True)
        at += 1
    assert made > 8


@pytest.mark.deep
def test_a_crash_before_any_statement_of_opening_a_payment_opens_none() -> None:
    with transaction.atomic():
        create_final_invoice()
        made = run_until_killed(lambda: payment_creation.open_due_payments(now=NOW), at=None)
        transaction.set_rollback(True)
    for at in range(made):
        with transaction.atomic():
            invoice = create_final_invoice()
            assert run_until_killed(lambda: payment_creation.open_due_payments(now=NOW), at=at) == at
            assert payments_of(invoice) == [], "it is opened whole or not at all"
            assert_settles_paid_once(invoice, NOW)
            transaction.set_rollback(True)
    assert made > 5
