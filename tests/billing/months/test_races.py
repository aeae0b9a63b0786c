"""Real commits, two at once: terms are of a month before it closes, or not at all."""

from threading import Event

from billing.services import closing, drafts, minimums, rating
from billing.services.discounts import giving
from billing.services.discounts.terms import Terms
from billing.services.minimums import MinimumPrepaid
from billing.services.wallets import terms
from billing.services.wallets.terms import HasMinimum
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, OPERATOR, customer, invoices, ran, sold
from tests.billing.months.terms import CLOSES, NOW, START, checked
from tests.billing.services.test_rating_races import together
from tests.database import OwnDatabase


def test_a_close_waits_for_terms_that_are_being_given(own_database: OwnDatabase) -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    rating.rate(now=NOW)
    written, may_commit = Event(), Event()

    def slowly() -> None:
        with as_tenant(tenant.pk):
            giving.give(tenant, Terms("Partner", percent_bp=1000), actor=OPERATOR, now=NOW)
            written.set()
            may_commit.wait(2)

    def meanwhile() -> None:
        written.wait(30)
        closing.close_due(now=CLOSES)

    assert together(slowly, meanwhile) == []
    final = invoices(tenant)[0]
    assert (final.total, final.number) == (900, 1)
    checked(final)


def test_a_draft_that_is_brought_up_to_date_meanwhile_has_the_new_terms(own_database: OwnDatabase) -> None:
    tenant, project = customer()
    ran(project, sold(EURO), START, 10 * HOUR)
    rating.rate(now=NOW)
    drafts.refresh(tenant, now=NOW)
    written = Event()

    def slowly() -> None:
        with as_tenant(tenant.pk):
            giving.give(tenant, Terms("Partner", percent_bp=1000), actor=OPERATOR, now=NOW)
            written.set()
            Event().wait(1)

    def meanwhile() -> None:
        written.wait(30)
        drafts.refresh(tenant, now=NOW)

    assert together(slowly, meanwhile) == []
    assert [invoice.total for invoice in invoices(tenant)] == [900]


def test_of_a_minimum_and_paying_beforehand_only_one_is_agreed_on(own_database: OwnDatabase) -> None:
    tenant, _ = customer()
    refused: list[str] = []

    def least() -> None:
        try:
            minimums.agree(tenant, minor=5000, since=NOW, until=None, actor=OPERATOR, now=NOW)
        except MinimumPrepaid:
            refused.append("minimum")

    def beforehand() -> None:
        try:
            terms.set_terms(
                tenant, payment="prepaid", standing="good", why="a trial", actor=OPERATOR, now=NOW
            )
        except HasMinimum:
            refused.append("prepaid")

    assert together(least, beforehand) == []
    assert len(refused) == 1
