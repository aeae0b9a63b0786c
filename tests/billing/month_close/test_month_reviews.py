"""Review of months before their invoices are final: waiting, holding, approving."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import BillingPeriod, Invoice
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.invoicing.month_close.close_month import MonthInReview
from billing.services.invoicing.month_close.month_reviews import NotReviewable
from billing.services.payments.dunning import dunning_steps
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from tenants.models import AuditEvent, Tenant
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import verify_invoice
from tests.billing.documents.sample_documents import document_text, document_words
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    utc,
)

pytestmark = pytest.mark.django_db
END, DAY = utc("2026-11-01 00:05:00"), timedelta(days=1)
BY: dict[str, Any] = {"actor": OPERATOR, "now": END}


@pytest.fixture
def tenant(settings: Any) -> Tenant:
    settings.INVOICE_REVIEW_HOURS = 48
    found, project = create_customer()
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_all_leases(now=END)
    return found


def october(tenant: Tenant) -> BillingPeriod:
    with tenant_scope(tenant.pk):
        return BillingPeriod.objects.get(tenant=tenant, label="2026-10")


def the_invoice(tenant: Tenant) -> Invoice:
    (found,) = invoices_of(tenant)
    return found


def test_invoice_waits_for_the_review_and_its_due_date_follows(tenant: Tenant) -> None:
    assert close_month.close_due_months(now=END + 2 * DAY - timedelta(seconds=1)).months == 0
    assert the_invoice(tenant).status == "draft"
    with pytest.raises(MonthInReview):
        close_month.close_period(tenant, "2026-10", now=END + DAY)
    assert close_month.close_due_months(now=END + 2 * DAY).months == 1
    invoice = the_invoice(tenant)
    assert (invoice.status, invoice.due_at) == ("finalized", END + 16 * DAY)
    assert dunning_steps.run_dunning(now=END + 18 * DAY) == 0
    assert dunning_steps.run_dunning(now=END + 19 * DAY) == 1


def test_reviewed_draft_is_complete_to_the_last_second(settings: Any) -> None:
    settings.INVOICE_REVIEW_HOURS = 48
    tenant, project = create_customer()
    add_running_lease(project, create_priced_offering(EURO), utc("2026-10-31 22:00:00"), seen_at=END)
    close_month.close_due_months(now=END)
    drafts = {invoice.period_id: invoice.total for invoice in invoices_of(tenant)}
    assert drafts[october(tenant).pk] == 200


def test_held_month_stays_open_until_it_is_approved(tenant: Tenant) -> None:
    month_reviews.hold_month(october(tenant), why="the price looks wrong", **BY)
    assert close_month.close_due_months(now=END + 40 * DAY).months == 0
    assert the_invoice(tenant).status == "draft"
    month_reviews.approve_month(october(tenant), **BY)
    assert close_month.close_due_months(now=END + 40 * DAY).months >= 1
    assert the_invoice(tenant).status == "finalized"
    with staff_scope():
        actions = AuditEvent.objects.filter(action__startswith="month.").order_by("pk").values_list("action", flat=True)
        assert list(actions) == ["month.hold", "month.approve"]
    with pytest.raises(NotReviewable):
        month_reviews.hold_month(october(tenant), why="too late", **BY)


def test_approved_month_closes_before_its_review_is_over(tenant: Tenant) -> None:
    month_reviews.approve_month(october(tenant), **BY)
    assert close_month.close_due_months(now=END).months == 1


def test_released_month_closes_when_its_review_is_over(tenant: Tenant) -> None:
    month_reviews.hold_month(october(tenant), why="wait", **BY)
    month_reviews.release_month(october(tenant), **BY)
    assert close_month.close_due_months(now=END + DAY).months == 0
    assert close_month.close_due_months(now=END + 2 * DAY).months == 1


def test_list_shows_months_that_are_over_with_their_state(tenant: Tenant) -> None:
    close_month.close_due_months(now=END)
    with staff_scope():
        (found,) = month_reviews.with_drafts(list(month_reviews.open_reviews(END)), now=END)
    assert (found.month.label, found.state, found.closes_at) == ("2026-10", "review", END + 2 * DAY)
    assert found.draft is not None
    assert found.draft.total == 200


def test_month_closes_without_a_lease_that_nobody_observed_for_days(settings: Any) -> None:
    settings.MONTH_CLOSE_UNOBSERVED_HOURS = 72
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    silent = add_running_lease(project, offering, utc("2026-10-31 22:00:00"), seen_at=utc("2026-10-31 23:00:00"))
    lease_rating.rate_all_leases(now=END)
    waits = close_month.close_due_months(now=END + 3 * DAY - timedelta(seconds=1))
    assert [each.tenant_id for each in waits.waiting] == [tenant.pk]
    assert close_month.close_due_months(now=END + 3 * DAY).months == 1
    invoice = next(each for each in invoices_of(tenant) if each.status == "finalized")
    assert (invoice.total, invoice.unobserved_leases) == (100, [silent.pk])
    assert f"is charged with a later invoice: {silent.pk}." in document_words(document_text(invoice))
    with tenant_scope(tenant.pk):
        silent.refresh_from_db()
        silent.transition(LeaseState.RELEASING, now=utc("2026-11-01 01:00:00"), reason=EndReason.BY_TENANT)
    lease_rating.rate_all_leases(now=utc("2026-12-01 00:01:00"))
    later = close_month.close_period(tenant, "2026-11", now=utc("2026-12-01 00:10:00"))
    assert later is not None
    assert later.total == 300  # two hours of October, of which none is on its invoice, and one of November
    verify_invoice(later)


def test_zero_invoice_is_not_issued_where_the_setting_says_so(settings: Any) -> None:
    for wanted in (True, False):
        settings.ZERO_INVOICES = wanted
        tenant, project = create_customer()
        add_ended_lease(project, create_priced_offering(0), utc("2026-10-05 00:00:00"), HOUR)
        lease_rating.rate_all_leases(now=END)
        close_month.close_due_months(now=END)
        assert october(tenant).status == "closed"
        assert len(invoices_of(tenant)) == int(wanted)
