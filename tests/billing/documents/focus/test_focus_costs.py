"""Costs in FOCUS rows: discounts and commitments in the rows that they reduce, and credit notes."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from billing.models import Invoice
from billing.services.ledger import ledger_balances
from billing.services.reports.cost_allocation import allocate_cost
from broker.models import Lease
from tenants.models import Project
from tenants.services import projects
from tenants.services.actors import SYSTEM
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.agreements.agreed_terms import START, close_and_get_invoice, create_discount
from tests.billing.agreements.test_commitments import create_commitment_terms
from tests.billing.corrections.correction_setup import (
    approve_correction,
    close_period,
    create_ten_hour_lease,
    propose_correction,
)
from tests.billing.credit_notes.issued_notes import issue_note
from tests.billing.documents.focus.focus_rules import Row
from tests.billing.documents.test_exports import column_total, read_export
from tests.billing.histories import EURO, HOUR, LONG_AGO, add_ended_lease, create_customer, create_priced_offering, utc
from tests.billing.payments.payable_invoices import NOW
from tests.billing.tax.taxed_tenants import LUMEN, set_tax_rate

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
ISSUED = utc("2026-12-03 10:00:00")


@pytest.fixture(autouse=True)
def _taxed(settings: Any, simulated_payments: None) -> None:
    settings.SUPPLIER = LUMEN.as_dict()
    set_tax_rate("DE", 19)


def costs(row: Row) -> tuple[str, ...]:
    return tuple(f"{Decimal(row[name]):.2f}" for name in ("ListCost", "ContractedCost", "BilledCost", "EffectiveCost"))


def test_a_discount_reduces_the_rows_of_its_usage() -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, 10 * HOUR)
    create_discount(tenant, percent_bp=1000)
    rows = read_export(close_and_get_invoice(tenant), "focus")
    assert [(row["ChargeCategory"], costs(row)) for row in rows] == [
        ("Usage", ("10.00", "10.00", "9.00", "9.00")),
        ("Tax", ("1.71", "1.71", "1.71", "1.71")),
    ]


def test_a_commitment_is_a_purchase_that_used_and_unused_hours_amortize() -> None:
    tenant, project = create_customer()
    offering = create_priced_offering(EURO)
    commitment = create_commitment_terms(tenant, offering, 2, until=START + DAY)
    add_ended_lease(project, offering, START, 10 * HOUR, quantity=3)
    rows = [row for row in read_export(close_and_get_invoice(tenant), "focus") if row["ChargeCategory"] != "Tax"]
    shown = [
        (row["ChargeCategory"], row["PricingCategory"], row["CommitmentDiscountStatus"], costs(row)) for row in rows
    ]
    assert shown == [
        ("Usage", "Committed", "Used", ("20.00", "20.00", "0.00", "10.00")),
        ("Usage", "Standard", "", ("10.00", "10.00", "10.00", "10.00")),
        ("Purchase", "Standard", "", ("24.00", "24.00", "24.00", "0.00")),
        ("Usage", "Committed", "Unused", ("14.00", "14.00", "0.00", "14.00")),
    ]
    assert [row["CommitmentDiscountId"] for row in rows] == [commitment.pk, "", commitment.pk, commitment.pk]
    assert [row["CommitmentDiscountQuantity"][:4] for row in rows] == ["20.0", "", "48.0", "28.0"]
    assert rows[2]["SubAccountId"] == rows[2]["SubAccountType"] == ""


def test_the_issuer_is_the_supplier_of_the_invoice(settings: Any) -> None:
    tenant, project = create_customer()
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    invoice = close_and_get_invoice(tenant)
    settings.SUPPLIER = LUMEN.as_dict() | {"name": "Renamed"}
    assert {row["InvoiceIssuerName"] for row in read_export(invoice, "focus")} == {LUMEN.name}


def create_shared_invoice() -> tuple[Invoice, Project, Project]:
    """Return an invoice with a commitment, two projects, and two people on one line."""
    tenant, root = create_customer()
    with tenant_scope(tenant.pk):
        below = projects.create(parent=root, name="below", actor=SYSTEM, now=LONG_AGO)
    offering = create_priced_offering(1_111_111_111)
    create_commitment_terms(tenant, offering, 1, until=START + DAY)
    for n, (project, who) in enumerate([(root, "usr_ada"), (root, "usr_bob"), (below, "usr_bob")]):
        lease = add_ended_lease(project, offering, START + timedelta(hours=2 * n), HOUR + n, quantity=2)
        with tenant_scope(tenant.pk):
            Lease.objects.filter(pk=lease.pk).update(requested_by=who, tags={"team": who})
    create_discount(tenant, percent_bp=777)
    return close_and_get_invoice(tenant), root, below


def test_credit_notes_reach_focus_and_cost_allocation_as_the_ledger_has_them() -> None:
    invoice, root, below = create_shared_invoice()
    notes = [issue_note(invoice, {1: 33}, now=ISSUED), issue_note(invoice, {2: 7, 3: 1}, now=ISSUED)]
    rows = read_export(invoice, "focus")
    credited = sum(note.total for note in notes)
    with staff_scope():
        booked = {line.type: line.credit - line.debit for line in ledger_balances.stored_trial_balance()[0].lines}
    assert booked["revenue"] + booked["tax_payable"] == invoice.total - credited
    for name in ("BilledCost", "EffectiveCost"):
        assert column_total(rows, name) * 100 == invoice.total - credited
    for by, tag in (("project", ""), ("user", ""), ("tag", "team")):
        with tenant_scope(invoice.tenant_id):
            parts = allocate_cost(invoice, by=by, tag=tag)
        assert sum(part.total for part in parts) == invoice.total - credited
        assert sum(part.credited for part in parts) == credited
    with tenant_scope(invoice.tenant_id):
        by_project = {part.key: part.total for part in allocate_cost(invoice, by="project")}
    for project in (root, below):
        own = [row for row in rows if row["SubAccountId"] == project.pk]
        assert column_total(own, "EffectiveCost") * 100 == by_project[project.pk]


def test_rows_of_a_credit_note_name_it_its_month_and_the_leases() -> None:
    invoice, *_ = create_shared_invoice()
    note = issue_note(invoice, {1: 100}, why="the GPU was slow", now=ISSUED)
    rows = [row for row in read_export(invoice, "focus") if row["InvoiceId"] == str(note)]
    assert {row["ChargeClass"] for row in rows} == {"Correction"}
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-12-01T00:00:00Z"}
    assert [row["ChargeCategory"] for row in rows] == ["Credit", "Credit", "Tax"]
    assert sorted(json_tag(row) for row in rows[:2]) == ["usr_ada", "usr_bob"]
    assert rows[0]["ChargeDescription"] == f"Credit note {note}: the GPU was slow"


def json_tag(row: Row) -> str:
    return row["Tags"].partition('"team": "')[2].partition('"')[0]


def test_the_credit_of_a_corrected_lease_belongs_to_that_lease_alone() -> None:
    tenant, project, lease = create_ten_hour_lease()
    with tenant_scope(tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(requested_by="usr_ada", tags={"team": "docking"})
        offering = Lease.objects.get(pk=lease.pk).offering
    add_ended_lease(project, offering, utc("2026-10-20 00:00:00"), 5 * HOUR)
    invoice = close_period(tenant)
    approve_correction(propose_correction(lease, 2, 5, now=NOW), now=NOW)
    rows = [row for row in read_export(invoice, "focus") if row["ChargeCategory"] == "Credit"]
    assert [row["ResourceId"] for row in rows] == [lease.pk]
    for by, tag, key in (("user", "", "usr_ada"), ("tag", "team", "docking"), ("project", "", project.pk)):
        with tenant_scope(tenant.pk):
            parts = {part.key: part.credited for part in allocate_cost(invoice, by=by, tag=tag)}
        assert {each: credited for each, credited in parts.items() if credited} == {key: 714}
