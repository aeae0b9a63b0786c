"""Invoices cancelled by a credit note and issued again from corrected usage."""

from datetime import timedelta
from typing import Any

import pytest

from billing.models import BillingPeriod, Invoice, PriceVersion, RatedCharge
from billing.services.agreements import commitments
from billing.services.agreements.discounts import tenant_discounts
from billing.services.agreements.discounts.discount_terms import DiscountTerms
from billing.services.cancellations.cancelled_invoices import NotRebillable, cancel_and_reopen
from billing.services.documents import csv_exports, invoice_bundles, stored_bundles
from billing.services.documents.focus import focus_exports
from billing.services.funds.accounts import account_terms
from billing.services.funds.grants import grant_balances
from billing.services.funds.wallets import wallet_balances
from billing.services.invoicing import drafts
from billing.services.invoicing.corrections import correction_approvals, correction_bookings, correction_proposals
from billing.services.invoicing.disputes import dispute_answers, dispute_requests
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.payments.bank_receipts.receipt_records import ReceiptUse
from billing.services.rating import lease_rating
from billing.services.reports import cost_allocation, line_explanations
from billing.verify import verify
from broker.models import Lease
from tenants.models import Project, Tenant
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.bank_receipts.receipts import assert_books_hold, balance_of, receive, tenant_of
from tests.billing.corrections.correction_setup import (
    approve_correction,
    close_period,
    create_ten_hour_lease,
    propose_price,
)
from tests.billing.credit_notes.issued_notes import create_november_invoice, create_october_invoice_of, issue_note
from tests.billing.grants.grant_setup import create_grant
from tests.billing.histories import EURO, HOUR, OPERATOR, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    create_draft_invoice,
    create_final_invoice,
    reload_invoice,
)
from tests.billing.tax.taxed_tenants import ATELIER, set_billing_details

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"actor": OPERATOR, "now": NOW + timedelta(days=1)}
LATER = NOW + timedelta(days=2)


def cancel(invoice: Invoice) -> Invoice:
    return cancel_and_reopen(invoice, why="the price was wrong", **BY)


def issue_again(invoice: Invoice) -> Invoice:
    """Approve the reopened month, close it, and return the new invoice."""
    with tenant_scope(invoice.tenant_id):
        month = BillingPeriod.objects.get(pk=invoice.period_id)
    month_reviews.approve_month(month, **BY)
    found = close_month.close_period(tenant_of(invoice), month.label, now=LATER)
    assert found is not None
    return found


def verified(invoice: Invoice, *, stored: bool = False) -> list[str]:
    """Return what verify.py finds wrong in an invoice's bundle."""
    with tenant_scope(invoice.tenant_id):
        content = stored_bundles.read_stored_bundle(invoice)
        assert (content is not None) == stored
        if content is None:
            content = invoice_bundles.build_bundle(invoice).whole(most=10**9)
    assert content is not None
    return verify.check(content).differences


def test_invoice_is_cancelled_once_and_issued_again_under_a_new_number() -> None:
    old = create_final_invoice()
    assert cancel(old).pk == cancel(old).pk
    assert reload_invoice(old).status == "void"
    assert close_month.close_due_months(now=LATER).months == 0  # held until somebody approves it
    new = issue_again(old)
    assert (str(old), str(new), new.rebills, new.total) == ("2026-10-0001", "2026-10-0002", old.pk, 200)
    assert (verified(new), verified(reload_invoice(old), stored=True)) == ([], [])
    assert_books_hold(LATER)


def test_corrected_usage_is_on_the_new_invoice() -> None:
    old = create_october_invoice_of(200, 105)
    cancel(old)
    with tenant_scope(old.tenant_id):
        lease = tenant_leases(old)[0]
    proposal = correction_proposals.propose_lease_correction(
        lease, charge=False, since=utc("2026-10-01 00:00:00"), until=utc("2026-10-01 00:30:00"), why="it was down", **BY
    )
    other = Actor("staff", "usr_other", "other@example.org")
    correction_approvals.approve_correction(proposal, seen=proposal.seal, actor=other, now=BY["now"])
    new = issue_again(old)
    assert (reload_invoice(old).total, new.total) == (305, 205)
    assert (verified(new), verified(reload_invoice(old), stored=True)) == ([], [])
    assert_books_hold(LATER)


def test_corrected_price_is_on_the_new_invoice() -> None:
    tenant, _, lease = create_ten_hour_lease()
    old = close_period(tenant)
    cancel(old)
    version = PriceVersion.objects.get(offering=lease.offering_id)
    correction = propose_price(version, 150, now=BY["now"])
    assert approve_correction(correction, now=BY["now"]).status == "approved"
    assert correction_bookings.book_approved_corrections(now=BY["now"]) == 1
    new = issue_again(old)
    assert (reload_invoice(old).total, new.total) == (2000, 1500)
    assert (verified(new), verified(reload_invoice(old), stored=True)) == ([], [])
    assert_books_hold(LATER)


def tenant_leases(invoice: Invoice) -> list[Any]:
    return list(Lease.objects.filter(tenant=invoice.tenant_id).order_by("pk"))


def test_paid_money_pays_the_new_invoice_and_the_rest_stays_on_the_balance() -> None:
    old = create_final_invoice()
    receive(old, 250)
    cancel(old)
    assert balance_of(old) == 250
    new = issue_again(old)
    assert (new.settled, new.due, balance_of(old)) == (200, 0, 50)
    assert_books_hold(LATER)


def test_new_address_is_on_the_new_invoice_only() -> None:
    old = create_final_invoice()
    cancel(old)
    with tenant_scope(old.tenant_id):
        set_billing_details(tenant_of(old), ATELIER)
    new = issue_again(old)
    assert new.customer is not None
    assert new.customer["name"] == ATELIER.name
    assert (reload_invoice(old).customer or {})["name"] != ATELIER.name


def test_discounts_commitments_and_grants_apply_again_but_only_once() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(4 * EURO)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    add_ended_lease(project, offering, utc("2026-10-05 00:00:00"), HOUR)
    tenant_discounts.give_discount(
        tenant, DiscountTerms("Partner", percent_bp=1000), first_month="2026-10", months=1, actor=OPERATOR,
        now=utc("2026-10-01 00:00:00"),
    )  # fmt: skip
    commitments.create_commitment(
        tenant, offering, units=1, nano_per_hour=3 * EURO, since=utc("2026-10-05 00:00:00"),
        until=utc("2026-10-05 01:00:00"), actor=OPERATOR, now=utc("2026-10-01 00:00:00"),
    )  # fmt: skip
    grant = create_grant(tenant, 100)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    old = close_month.close_period(tenant, "2026-10", now=NOW)
    assert old is not None
    assert (old.total, old.settled) == (630, 100)
    cancel(old)
    new = issue_again(old)
    assert (new.total, new.settled, new.due) == (630, 100, 530)
    assert (verified(new), verified(reload_invoice(old), stored=True)) == ([], [])
    with tenant_scope(tenant.pk):
        assert grant.returns.count() == 1
    assert_books_hold(LATER)


def test_late_usage_of_a_later_month_is_not_billed_on_a_reopened_one() -> None:
    old = create_final_invoice()
    november = create_november_invoice(old, 100)
    cancel_and_reopen(old, why="wrong", actor=OPERATOR, now=utc("2026-12-02 00:00:00"))
    with tenant_scope(old.tenant_id):
        tenant, project = Tenant.objects.get(pk=old.tenant_id), Project.objects.get(tenant=old.tenant_id)
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-11-10 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=utc("2026-12-02 00:00:00"))
    with tenant_scope(tenant.pk):
        charged = RatedCharge.objects.filter(period_id=november.period_id).values("billed_period_id")
        carried = set(BillingPeriod.objects.filter(pk__in=charged).values_list("label", flat=True))
    assert carried == {"2026-11", "2026-12"}


def test_draft_and_disputed_invoices_say_why_they_cannot_be_issued_again(settings: Any) -> None:
    disputed = create_final_invoice()
    (dispute,) = dispute_requests.dispute_lines(disputed, lines={1: None}, reason="idle", actor=MIRA, now=NOW)
    for invoice, why in ((create_draft_invoice(), "is draft"), (disputed, "disputes lines of invoice .*: 1")):
        with pytest.raises(NotRebillable, match=why):
            cancel(invoice)
    dispute_answers.accept_dispute(dispute, minor=50, answer="", **BY | {"now": NOW})
    cancel(disputed)
    new = issue_again(disputed)
    assert (new.total, reload_invoice(new).due) == (200, 150)
    assert_books_hold(LATER)


def test_cancellation_credits_what_is_left_and_earlier_credits_are_given_again() -> None:
    old = create_october_invoice_of(200, 105)
    issue_note(old, {1: 80})
    receive(old, 225)
    cancel(old)
    assert (reload_invoice(old).status, balance_of(old)) == ("void", 225)
    new = reload_invoice(issue_again(old))
    assert (new.total, new.due, new.status) == (305, 0, "paid")
    with tenant_scope(old.tenant_id):
        assert [note.total for note in old.credit_notes.order_by("issued_at")] == [80, 225]
        (again,) = new.credit_notes.all()
    assert (again.total, f"of the cancelled invoice {old}" in again.reason) == (80, True)
    assert balance_of(old) == 0
    assert_books_hold(LATER)
    cancel_and_reopen(new, why="and again", actor=OPERATOR, now=LATER + timedelta(days=1))
    third = issue_again(new)
    with tenant_scope(old.tenant_id):
        assert [note.total for note in third.credit_notes.all()] == [80]
    assert_books_hold(LATER)


def test_credits_of_people_are_left_out_on_request_and_those_of_corrections_never() -> None:
    old = create_october_invoice_of(200, 105)
    issue_note(old, {2: 30})
    with tenant_scope(old.tenant_id):
        lease = tenant_leases(old)[0]
    proposal = correction_proposals.propose_lease_correction(
        lease, charge=False, since=utc("2026-10-01 00:00:00"), until=utc("2026-10-01 00:30:00"), why="it was down",
        actor=OPERATOR, now=NOW,
    )  # fmt: skip
    other = Actor("staff", "usr_other", "other@example.org")
    correction_approvals.approve_correction(proposal, seen=proposal.seal, actor=other, now=NOW)
    cancel_and_reopen(old, why="the address was wrong", credits_again=False, **BY)
    new = issue_again(old)
    with tenant_scope(old.tenant_id):
        assert [(note.total, note.correction_id) for note in new.credit_notes.all()] == [(100, proposal.pk)]
    assert (new.total, reload_invoice(new).due) == (305, 205)
    assert_books_hold(LATER)


def test_money_of_a_prepaid_tenant_is_kept_for_the_new_invoice() -> None:
    tenant, project = create_customer()
    grant = create_grant(tenant, 100)
    add_ended_lease(project, create_priced_offering(2 * EURO), utc("2026-10-05 00:00:00"), HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    with tenant_scope(tenant.pk):
        invoice = drafts_of(tenant)
    receive(invoice, 300, pays=ReceiptUse.BALANCE)
    with tenant_scope(tenant.pk):
        account_terms.set_account_terms(
            tenant, payment="prepaid", account_status="good", why="new", **BY | {"now": NOW}
        )
    old = close_month.close_period(tenant, "2026-10", now=NOW)
    assert old is not None
    assert (old.total, old.due, balance_of(old), held_and_available(tenant)) == (200, 0, 200, (0, 200))
    cancel(old)
    assert (balance_of(old), held_and_available(tenant)) == (300, (200, 200))  # no lease may use what comes back
    new = issue_again(old)
    assert (new.total, new.due, balance_of(old), held_and_available(tenant)) == (200, 0, 200, (0, 200))
    with tenant_scope(tenant.pk):
        assert grant_balances.remaining_by_grant(tenant.pk, [grant.pk]) == {}
    assert_books_hold(LATER)


def drafts_of(tenant: Tenant) -> Invoice:
    """Return the tenant's only draft, after a refresh."""
    drafts.refresh_drafts(tenant, now=NOW)
    return Invoice.objects.get(tenant=tenant)


def held_and_available(tenant: Tenant) -> tuple[int, int]:
    """Return what of a wallet is taken and what is available; cents."""
    with tenant_scope(tenant.pk):
        funds = wallet_balances.wallet_funds(tenant, now=LATER)
    return funds.taken, funds.available


def exports_of(invoice: Invoice) -> list[Any]:
    """Return usage records, FOCUS rows, cost allocation and first explanation of an invoice."""
    with tenant_scope(invoice.tenant_id):
        invoice = Invoice.objects.select_related("period", "tenant").get(pk=invoice.pk)
        shares = cost_allocation.allocate_cost(invoice, by="project")
        charged = [(each.unit_seconds, each.net, each.tax) for each in shares]
        explained = line_explanations.explain_invoice_line(invoice.lines.select_related("invoice__period").get(n=1))
    files = [list(csv_exports.csv_text(invoice, kind)) for kind in ("lines", "charges")]
    rows = [dict(zip(focus_exports.COLUMNS, row, strict=True)) for row in focus_exports.focus_rows(invoice)]
    billed = [(row["ResourceId"], row["BilledCost"]) for row in rows if row["ChargeCategory"] != "Credit"]
    return [charged, files, billed, explained.recomputed_exact]


def test_exports_of_a_cancelled_invoice_say_what_it_said() -> None:
    old = create_october_invoice_of(200, 105)
    before = exports_of(old)
    cancel(old)
    with tenant_scope(old.tenant_id):
        lease = tenant_leases(old)[0]
    proposal = correction_proposals.propose_lease_correction(
        lease, charge=False, since=utc("2026-10-01 00:00:00"), until=utc("2026-10-01 00:30:00"), why="it was down", **BY
    )
    other = Actor("staff", "usr_other", "other@example.org")
    correction_approvals.approve_correction(proposal, seen=proposal.seal, actor=other, now=BY["now"])
    new = issue_again(old)
    assert new.total == 205
    assert exports_of(old) == before
    assert exports_of(new) != before
