"""Races of discounts and minimums with month close, draft refresh and prepayment."""

from threading import Event

import pytest

from billing.services.agreements import minimums
from billing.services.agreements.discounts import tenant_discounts
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.agreements.minimums import MinimumPrepaid
from billing.services.funds.accounts import account_terms
from billing.services.funds.accounts.account_terms import HasMinimum
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating
from tenants.services.rls import tenant_scope
from tests.billing.agreements.agreed_terms import CLOSES, NOW, START, verify_invoice
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
)
from tests.billing.rating.test_rating_races import together
from tests.database import OwnDatabase


@pytest.mark.deep
def test_month_close_waits_for_a_discount_being_granted(own_database: OwnDatabase) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    written, may_commit = Event(), Event()

    def slowly() -> None:
        with tenant_scope(tenant.pk):
            tenant_discounts.give_discount(tenant, DiscountTerms("Partner", percent_bp=1000), actor=OPERATOR, now=NOW)
            written.set()
            may_commit.wait(2)

    def meanwhile() -> None:
        written.wait(30)
        close_month.close_due_months(now=CLOSES)

    assert together(slowly, meanwhile) == []
    final = invoices_of(tenant)[0]
    assert (final.total, final.number) == (900, 1)
    verify_invoice(final)


@pytest.mark.deep
def test_a_draft_refreshed_during_a_discount_grant_includes_the_discount(own_database: OwnDatabase) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    written = Event()

    def slowly() -> None:
        with tenant_scope(tenant.pk):
            tenant_discounts.give_discount(tenant, DiscountTerms("Partner", percent_bp=1000), actor=OPERATOR, now=NOW)
            written.set()
            Event().wait(1)

    def meanwhile() -> None:
        written.wait(30)
        drafts.refresh_drafts(tenant, now=NOW)

    assert together(slowly, meanwhile) == []
    assert [invoice.total for invoice in invoices_of(tenant)] == [900]


def test_a_concurrent_minimum_and_prepayment_are_never_both_agreed(own_database: OwnDatabase) -> None:
    tenant, _ = create_customer()
    refused: list[str] = []

    def least() -> None:
        try:
            minimums.create_minimum(tenant, minor=5000, since=NOW, until=None, actor=OPERATOR, now=NOW)
        except MinimumPrepaid:
            refused.append("minimum")

    def beforehand() -> None:
        try:
            account_terms.set_account_terms(
                tenant, payment="prepaid", account_status="good", why="a trial", actor=OPERATOR, now=NOW
            )
        except HasMinimum:
            refused.append("prepaid")

    assert together(least, beforehand) == []
    assert len(refused) == 1
