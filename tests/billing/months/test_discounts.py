"""What discounts take off a month: of which lines, in which order, and never more than there is."""

import pytest

from billing.services import closing, drafts
from tests.billing.histories import EURO, HOUR, customer, invoices, ran, sold
from tests.billing.months.terms import CLOSES, NOW, START, amounts, carried, checked, closed, drafted, given

pytestmark = pytest.mark.django_db


def test_a_percentage_is_off_the_draft_and_off_the_invoice() -> None:
    tenant, project = customer()
    ran(project, offering := sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    draft = drafted(tenant)
    assert (amounts(draft), draft.total, carried(tenant)) == ([(offering.pk, 900)], 900, [])
    checked(draft)
    final = closed(tenant)
    assert (amounts(final), final.total) == ([(offering.pk, 900)], 900)
    assert carried(tenant) == [("percent", offering.pk, -HOUR * EURO)]
    checked(final)


def test_b28_reckoning_again_and_again_is_reckoning_once() -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    given(tenant, percent_bp=1000)
    given(tenant, minor=150)
    drafted(tenant)
    assert [drafts.refresh(tenant, now=NOW) for _ in range(3)] == [0, 0, 0]
    assert [invoice.total for invoice in invoices(tenant)] == [750]
    final = closed(tenant)
    assert closing.close_period(tenant, "2026-11", now=CLOSES) == final
    assert final.total == 750
    assert len(carried(tenant)) == 2
