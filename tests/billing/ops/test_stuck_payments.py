"""The operators' page names every payment that waits for a person, and why; and how many have no answer."""

from collections.abc import Iterator
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.payments import waiting
from ports import payments
from tenants.services.walls import as_tenant
from tests.billing.payments.bills import Ill, bill, collect, ill, pay

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
