"""Where two features of money meet: what a customer and an accountant expect of both together."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from billing.models import AccountTerms, BillingPeriod, CreditNote, DunningStep, Grant, Invoice, PriceVersion
from billing.services.agreements import commitments
from billing.services.cancellations.cancelled_invoices import cancel_and_reopen
from billing.services.catalogue import price_withdrawal
from billing.services.funds.accounts import account_terms
from billing.services.funds.accounts.account_terms import MonthNotFinal
from billing.services.funds.wallets import grant_withdrawals
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections import correction_approvals, correction_proposals
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.invoicing.month_close.close_month import MonthInReview
from billing.services.payments import write_offs
from billing.services.payments.dunning import dunning_steps, overdue_status
from billing.services.rating import lease_rating
from billing.services.reports.accounting import vat_report
from billing.services.tax import exchange_rates
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.bank_receipts.receipts import assert_books_hold, balance_of, receive, tenant_of
from tests.billing.credit_notes.issued_notes import create_october_invoice_of, issue_note
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import (
    EURO,
    HOUR,
    OPERATOR,
    add_ended_lease,
    add_quote,
    add_running_lease,
    create_customer,
    create_priced_offering,
    set_price,
    utc,
)
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice
from tests.billing.tax.taxed_tenants import LUMEN, PERSON, close_taxed_month, set_billing_details, set_tax_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("simulated_payments", "captured")]
DAY = timedelta(days=1)
APPROVER = Actor("staff", "usr_other", "other@example.org")


def month_of(invoice: Invoice) -> BillingPeriod:
    with tenant_scope(invoice.tenant_id):
        return BillingPeriod.objects.get(pk=invoice.period_id)


def cancel(invoice: Invoice, *, now: datetime = NOW + DAY) -> None:
    cancel_and_reopen(invoice, why="wrong", actor=OPERATOR, now=now)


def issue_again(invoice: Invoice, *, now: datetime = NOW + 2 * DAY) -> Invoice | None:
    month_reviews.approve_month(month_of(invoice), actor=OPERATOR, now=now)
    found = close_month.close_period(tenant_of(invoice), month_of(invoice).label, now=now)
    return reload_invoice(found) if found else None


def test_partial_transfer_and_credit_note_leave_the_same_due_after_a_rebill() -> None:
    """Who paid 100 of 305 and was credited 80 owes 125, before and after."""
    old = create_october_invoice_of(200, 105)
    receive(old, 100)
    issue_note(old, {1: 80})
    assert reload_invoice(old).due == 125
    cancel(old)
    assert balance_of(old) == 100
    new = issue_again(old)
    assert new is not None
    assert (new.due, balance_of(old)) == (125, 0)
    assert_books_hold(NOW + 2 * DAY)


def test_month_opened_again_is_held_and_reviewed_again_once_released(settings: Any) -> None:
    """A released month closes after a whole review from its reopening, not at once."""
    settings.INVOICE_REVIEW_HOURS = 48
    old = create_october_invoice_for_review()
    reopened = utc("2026-11-20 12:00:00")
    cancel(old, now=reopened)
    close_month.close_due_months(now=reopened + timedelta(hours=40))
    assert month_of(old).status == "open"  # held until somebody decides
    month_reviews.release_month(month_of(old), actor=OPERATOR, now=reopened + timedelta(hours=1))
    with pytest.raises(MonthInReview, match="2026-11-22T12:00:00"):
        close_month.close_period(tenant_of(old), "2026-10", now=reopened + timedelta(hours=47))
    close_month.close_due_months(now=reopened + timedelta(hours=47))
    assert month_of(old).status == "open"
    close_month.close_due_months(now=reopened + timedelta(hours=48))
    assert month_of(old).status == "closed"


def create_october_invoice_for_review() -> Invoice:
    """Return the invoice of an October that was reviewed for two days."""
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    found = close_month.close_period(tenant, "2026-10", now=NOW + 3 * DAY)
    assert found is not None
    return found


def set_terms(tenant: Tenant, payment: str, *, now: datetime) -> None:
    account_terms.set_account_terms(
        tenant, payment=payment, account_status="good", why="agreed", actor=OPERATOR, now=now
    )


def test_month_follows_the_terms_at_its_end_and_earlier_months_those_they_had() -> None:
    """October was used as a paying tenant: a change in November makes no report of it."""
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        drafts.refresh_drafts(tenant, now=NOW)
    with pytest.raises(MonthNotFinal, match="2026-10"):
        set_terms(tenant, "showback", now=NOW)
    october = close_month.close_period(tenant, "2026-10", now=NOW)
    assert october is not None
    set_terms(tenant, "showback", now=NOW + DAY)
    set_terms(tenant, "invoice", now=NOW + 10 * DAY)  # and back in mid-month
    add_ended_lease(project, offering, utc("2026-11-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW + 31 * DAY)
    november = close_month.close_period(tenant, "2026-11", now=NOW + 31 * DAY)
    assert november is not None
    assert (october.status, november.status, november.due) == ("finalized", "finalized", 200)


def test_credit_taken_back_has_still_paid_what_it_paid_and_pays_the_invoice_issued_again() -> None:
    tenant, project = create_customer()
    grant = create_grant(tenant, 300)
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    old = close_month.close_period(tenant, "2026-10", now=NOW)
    assert old is not None
    grant_withdrawals.take_back_grant(grant, why="by mistake", actor=OPERATOR, now=NOW + timedelta(hours=1))
    assert (reload_invoice(old).due, reload_invoice(old).settled) == (0, 200)
    cancel(old)
    new = issue_again(old)
    assert new is not None
    assert (new.total, new.due) == (200, 0)
    with tenant_scope(tenant.pk):
        assert sorted(Grant.objects.values_list("minor", flat=True)) == [200, 300]
    assert_books_hold(NOW + 2 * DAY)


def test_withdrawn_price_leaves_the_quote_that_was_given_before_it() -> None:
    """A quote cites the price in force; withdrawing the one that would follow changes neither."""
    tenant, project = create_customer()
    offering = create_priced_offering(2 * EURO)
    later = set_price(offering, 5 * EURO, since=utc("2099-10-10 00:00:00"))  # PostgreSQL reads its own clock
    quoted = add_ended_lease(project, offering, utc("2026-10-12 00:00:00"), HOUR)
    add_ended_lease(project, offering, utc("2026-10-12 00:00:00"), HOUR)
    add_quote(quoted, PriceVersion.objects.get(offering=offering, nano_per_hour=2 * EURO))
    price_withdrawal.withdraw_price(later, actor=OPERATOR, now=utc("2026-10-09 00:00:00"))
    assert PriceVersion.objects.get(offering=offering).nano_per_hour == 2 * EURO
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    invoice = close_month.close_period(tenant, "2026-10", now=NOW)
    assert invoice is not None
    assert invoice.total == 400


def test_corrected_hours_of_a_running_lease_still_cost_their_commitment() -> None:
    """A commitment is owed used or not; hours beyond it are given back in full."""
    tenant, project = create_customer()
    offering = create_priced_offering(4 * EURO)
    lease = add_running_lease(project, offering, utc("2026-10-05 00:00:00"))
    commitments.create_commitment(
        tenant, offering, units=1, nano_per_hour=3 * EURO, since=utc("2026-10-05 00:00:00"),
        until=utc("2026-10-05 10:00:00"), actor=OPERATOR, now=utc("2026-10-01 00:00:00"),
    )  # fmt: skip
    with tenant_scope(tenant.pk):
        assert lease.add_metering_tick(at=utc("2026-10-05 12:00:00"))
    lease_rating.rate_tenant_leases(tenant, now=utc("2026-10-06 00:00:00"))
    moment = utc("2026-10-06 00:00:00")
    with tenant_scope(tenant.pk):
        proposal = correction_proposals.propose_lease_correction(
            lease, charge=False, since=utc("2026-10-05 10:00:00"), until=utc("2026-10-05 12:00:00"), why="down",
            actor=OPERATOR, now=moment,
        )  # fmt: skip
    correction_approvals.approve_correction(proposal, seen=proposal.seal, actor=APPROVER, now=moment)
    with tenant_scope(tenant.pk):
        drafts.refresh_drafts(tenant, now=moment)
        draft = Invoice.objects.get(tenant=tenant)
    assert draft.total == 3000  # ten committed hours at 3.00; the two beyond them are given back


def test_tax_of_a_consumer_abroad_in_another_currency_is_corrected_at_the_rate_of_the_month(settings: Any) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("FR", 20)
    tenant, project = create_customer(currency="USD")
    set_billing_details(tenant, PERSON)
    add_ended_lease(project, create_priced_offering(100 * EURO, currency="USD"), utc("2026-10-03 00:00:00"), HOUR)
    invoice = close_taxed_month(tenant)
    for day, rate in ((utc("2026-10-31 00:00:00"), 900_000), (utc("2026-12-31 00:00:00"), 800_000)):
        exchange_rates.add_exchange_rate(
            currency="USD", day=day.date(), rate=rate, source="ECB", actor=OPERATOR, now=day + DAY
        )
    write_offs.write_off_invoice(invoice, why="insolvent", actor=OPERATOR, now=utc("2026-12-05 00:00:00"))
    with staff_scope():
        october, december = vat_report.vat_lines("2026-10", "2026-12")
    assert (october.return_name, october.tax, october.tax_own) == ("One Stop Shop", 2000, 1800)
    assert (december.tax, december.tax_own) == (-2000, -1600)


def test_cancelled_invoice_is_no_longer_dunned_and_the_new_one_begins_anew() -> None:
    old = create_final_invoice()
    assert old.due_at is not None
    late = old.due_at + 20 * DAY
    for days in range(0, 20):
        dunning_steps.run_dunning(now=old.due_at + days * DAY)
    with tenant_scope(old.tenant_id):
        assert AccountTerms.objects.get(tenant=old.tenant_id).account_status != "good"
    cancel(old, now=late)
    overdue_status.clear_overdue_statuses(now=late)
    with tenant_scope(old.tenant_id):
        assert AccountTerms.objects.get(tenant=old.tenant_id).account_status == "good"
        steps = DunningStep.objects.count()
    dunning_steps.run_dunning(now=late + 10 * DAY)
    new = issue_again(old, now=late + 11 * DAY)
    assert new is not None
    assert new.due_at == late + 11 * DAY + (old.due_at - NOW)
    dunning_steps.run_dunning(now=late + 12 * DAY)
    with tenant_scope(old.tenant_id):
        assert DunningStep.objects.count() == steps


def test_month_corrected_to_nothing_issues_no_zero_invoice_and_returns_the_money(settings: Any) -> None:
    settings.ZERO_INVOICES = False
    tenant, project = create_customer()
    lease = add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    old = close_month.close_period(tenant, "2026-10", now=NOW)
    assert old is not None
    receive(old, 200)
    issue_note(old, {1: 50}, now=NOW)
    cancel(old)
    with tenant_scope(tenant.pk):
        proposal = correction_proposals.propose_lease_correction(
            lease, charge=False, since=utc("2026-10-05 00:00:00"), until=utc("2026-10-05 01:00:00"), why="down",
            actor=OPERATOR, now=NOW + DAY,
        )  # fmt: skip
    correction_approvals.approve_correction(proposal, seen=proposal.seal, actor=APPROVER, now=NOW + DAY)
    assert issue_again(old) is None
    with tenant_scope(tenant.pk):
        assert sorted(note.total for note in CreditNote.objects.all()) == [50, 150]
    assert balance_of(old) == 200
    assert_books_hold(NOW + 2 * DAY)
