"""Credit pays what is owed with its tax; a part of a line has its part of the tax."""

from typing import Any

import pytest

from billing.services.ledger import books
from tenants.services.walls import as_staff
from tests.billing.credits.notes import credit
from tests.billing.grants.gifts import drawn, give, left
from tests.billing.histories import at, customer
from tests.billing.payments.bills import NOW, collect, pay, taken
from tests.billing.tax.papers import LUMEN, closed, taxed, told, used

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _taxed(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    taxed("DE", 19)


def test_credit_pays_a_line_with_its_tax() -> None:
    tenant, project = customer()
    told(tenant, LUMEN)
    used(project, 1000)
    grant = give(tenant, 5000)
    invoice = closed(tenant)
    assert (invoice.total, invoice.tax, drawn(invoice), left(grant)) == (1190, 190, {grant.pk: 1190}, 3810)


def test_of_a_line_that_ran_on_after_its_end_credit_pays_its_part_with_the_tax_of_that_part() -> None:
    tenant, project = customer()
    told(tenant, LUMEN)
    used(project, 1000)
    grant = give(tenant, 5000, expires_at=at("2026-10-01 00:30:00"), now=at("2026-10-01 00:00:00"))
    assert drawn(closed(tenant)) == {grant.pk: 595}


def test_a_taxed_invoice_gives_back_what_was_paid_and_then_credit_to_nothing() -> None:
    tenant, project = customer()
    told(tenant, LUMEN)
    used(project, 333, 105)
    grant = give(tenant, 200)
    invoice = closed(tenant)
    collect(pay(invoice), now=NOW)
    first, second = credit(invoice, {1: 333}), credit(invoice)
    assert first.to_balance + second.to_balance == sum(taken(invoice)) == invoice.total - 200
    assert (left(grant), invoice.total) == (200, first.total + second.total)
    with as_staff():
        assert (books.reckoned()[1], books.uncleared()) == ((), [])
