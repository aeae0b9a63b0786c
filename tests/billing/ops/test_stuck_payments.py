"""The operators' page names every payment that waits for a person, and why; and how many have no answer."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.payments import waiting
from ports import clock, payments
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import NOW, Ill, bill, collect, ill, pay

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    with payments.through(SimulatedGateway()):
        yield


def stuck() -> Invoice:
    invoice = bill()
    ill(invoice, Ill.REJECTED)
    collect(pay(invoice))
    return invoice


def read(operator: Client) -> str:
    answer = operator.get("/ops/system/")
    assert answer.status_code == 200
    return " ".join(unescape(strip_tags(answer.content.decode().replace("<", " <"))).split())


def test_nothing_is_said_while_nothing_waits(operator: Client) -> None:
    told = read(operator)
    assert "for a person" not in told
    assert "Payments without an answer 0" in told


def test_what_waits_is_named_with_its_tenant_its_sum_and_its_reason(operator: Client) -> None:
    invoice = stuck()
    pay(bill())
    with as_tenant(invoice.tenant_id):
        payer = invoice.tenant.name
    told = read(operator)
    assert "1 payment waits for a person." in told
    assert f"{invoice} {payer} The simulated gateway does not accept our credentials." in told
    assert "simulated · bad_credentials · pay_" in told
    assert "€2.00" in told
    assert "Payments without an answer 1, oldest" in told


def test_many_are_counted_and_the_oldest_shown(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SHOWN", 2)
    invoices = [stuck() for _ in range(3)]
    told = read(operator)
    assert "3 payments wait for a person." in told
    assert "the 2 that wait longest of 3" in told
    assert [str(each) in told for each in invoices].count(True) == 2


def test_the_page_asks_as_often_however_many_wait(operator: Client) -> None:
    counts = []
    for _ in range(3):
        stuck()
        with CaptureQueriesContext(connection) as spoken:
            read(operator)
        counts.append(len(spoken))
    assert len(set(counts)) == 1, counts


def test_an_operator_says_that_nothing_was_taken_after_being_asked(operator: Client) -> None:
    invoice = stuck()
    with as_tenant(invoice.tenant_id):
        payment = invoice.payments.get()
        payer = invoice.tenant.name
    address = f"/ops/payments/{payment.pk}/untaken/"
    assert f'href="{address}"' in operator.get("/ops/system/").content.decode()
    asked = unescape(operator.get(address).content.decode())
    assert f"Nothing was taken for {invoice} of {payer}?" in asked
    assert f"Look for {payment.pk} in the books of simulated first." in asked
    assert "simulated is set here and is asked first" in asked
    with clock.standing_at(NOW + timedelta(hours=1)):
        refused = operator.post(address, {"reason": ""})
        assert (refused.status_code, "A reason has 1 to" in refused.content.decode()) == (400, True)
        assert operator.post(address, {"reason": "account closed"})["Location"] == "/ops/system/"
    assert "waits for a person." not in read(operator)
    assert operator.post(address, {"reason": "again"}).status_code == 409
    with payments.through(None):
        assert "simulated is not set here any longer" in operator.get(address).content.decode()
