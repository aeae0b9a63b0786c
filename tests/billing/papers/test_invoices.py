"""Papers of invoices and credit notes: what they say, and that a final one never says anything else."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from billing.domain.papers import Named, Party
from billing.models import Invoice, KeptPaper
from billing.services import closing, rating
from billing.services.papers import keeping
from tenants.models import Project, Tenant
from tenants.services.walls import as_staff, as_tenant
from tests.billing.credits.notes import LATER, WHY, credit, month_of_two_lines, november
from tests.billing.grants.gifts import give
from tests.billing.histories import EURO, HOUR, at, customer, ran, reprice, sold
from tests.billing.papers.sheets import kept, said, words
from tests.billing.payments.bills import NOW, bill, collect, draft, pay

pytestmark = pytest.mark.django_db


def asked(invoice: Invoice, **more: Any) -> keeping.Handed:
    """Ask for the paper of an invoice."""
    return keeping.invoice_paper(invoice, now=more.get("now", NOW))


def test_an_invoice_says_who_charges_whom_for_what_when_and_how_much() -> None:
    october = month_of_two_lines(200, 105)
    told = said(october)
    assert (told.title, told.number, told.draft) == ("Invoice", "2026-10-0001", False)
    assert told.customer == Party(tenant_of(october).name)
    assert told.foot == f"Invoice 2026-10-0001 · {october.pk} · {october.tenant_id}"
    assert told.supplier == Party("gpubroker")
    assert told.facts == (
        ("Issued", "1 November 2026"),
        ("Due", "15 November 2026"),
        ("Period", "1 – 31 October 2026"),
        ("Time zone", "UTC"),
        ("Currency", "EUR"),
    )
    assert (told.headline.amount, told.headline.words) == ("€3.05", "due by 15 November 2026")
    (group,) = told.groups
    assert group.amount == "€3.05"
    assert [row[2:] for row in group.rows] == [("3,600", "€2.00", "€2.00"), ("3,600", "€1.05", "€1.05")]
    assert [(each.label, each.amount) for each in told.sums] == [("Total", "€3.05")]
    assert [note.code for note in told.notes if note.code] == ["python verify.py invoice-2026-10-0001.json"]
    assert october.pk in told.foot


def test_lines_are_grouped_by_project_and_say_when_their_price_changed() -> None:
    tenant, root = customer("Asia/Kolkata")
    with as_tenant(tenant.pk):
        below = Project.objects.create(
            tenant=tenant, parent=root, path=[root.pk, "prj_below"], name="below", pk="prj_below",
            created_at=NOW,
        )  # fmt: skip
    offering = sold(EURO)
    reprice(offering, 2_375 * EURO // 1000, since=at("2026-10-14 19:00:00"))
    for project in (root, below):
        ran(project, offering, at("2026-10-14 18:00:00"), 2 * HOUR)
    rating.rate_tenant(tenant, now=NOW)
    october = closing.close_period(tenant, "2026-10", now=NOW)
    assert october is not None
    told = said(october)
    assert sorted((group.name, group.amount) for group in told.groups) == sorted(
        [(root.name, "€3.38"), ("below", "€3.38")]
    )
    subs = {row[1].sub for group in told.groups for row in group.rows if isinstance(row[1], Named)}
    assert subs == {"1 lease · on-demand, until 15 Oct", "1 lease · on-demand, from 15 Oct"}
    assert {row[3] for group in told.groups for row in group.rows} == {"€1.00", "€2.375"}
    assert ("Time zone", "Asia/Kolkata") in told.facts


def test_what_was_drawn_from_the_balance_is_said_with_what_is_due_then() -> None:
    october = month_of_two_lines(200, 105)
    collect(pay(october))
    credit(october, {1: 150})
    partly = said(november(october, 200))
    assert [(each.label, each.amount) for each in partly.sums] == [
        ("Total", "€2.00"),
        ("Settled from your balance", "−€1.50"),
        ("Due", "€0.50"),
    ]
    assert partly.headline.more == "Of €2.00, €1.50 settled from your balance. It is collected automatically."


def test_where_the_balance_was_enough_nothing_is_due() -> None:
    october = month_of_two_lines(200, 105)
    collect(pay(october))
    credit(october, {1: 150})
    told = said(november(october, 100))
    assert (told.headline.amount, told.headline.words) == ("€0.00", "nothing is due")
    assert told.headline.more == "Of €1.00, €1.00 settled from your balance."


def test_an_invoice_of_nothing_says_so() -> None:
    assert said(bill(0)).headline.words == "nothing is due"


def test_where_nobody_collects_it_is_paid_by_transfer() -> None:
    october = month_of_two_lines()
    october.collected = False
    assert said(october).headline.more == "Pay by transfer, and write 2026-10-0001 on it."


def test_a_draft_says_that_it_is_one_and_is_not_kept() -> None:
    open_ = draft()
    told = said(open_)
    assert (told.draft, told.headline.words) == (True, "so far")
    assert dict(told.facts)["As of"] == "1 November 2026"
    handed = asked(open_)
    assert (handed.name, kept(open_)) == ("invoice-2026-11-draft.pdf", [])


@pytest.mark.parametrize(("currency", "shown"), [("JPY", "¥2"), ("KWD", "KWD\xa02.000"), ("EUR", "€2.00")])
def test_amounts_have_the_decimals_of_their_currency(currency: str, shown: str) -> None:
    told = said(bill(currency=currency))
    assert (told.sums[0].amount, told.groups[0].rows[0][3]) == (shown, shown)


def test_whoever_asks_again_gets_the_same_bytes_whatever_was_renamed_since() -> None:
    october = month_of_two_lines()
    first = asked(october)
    with as_tenant(october.tenant_id):
        Project.objects.filter(tenant=october.tenant_id).update(name="renamed")
        Tenant.objects.filter(pk=october.tenant_id).update(name="another name")
    collect(pay(october))
    credit(october, {1: 150})
    with as_tenant(october.tenant_id):
        again = Invoice.objects.select_related("period", "tenant").get(pk=october.pk)
    assert "renamed" in words(said(again))  # as it would be laid out now; who stood on it stays
    assert "another name" not in words(said(again))
    assert asked(again, now=LATER) == first
    assert len(kept(october)) == 1


def test_of_two_who_ask_at_once_both_get_the_one_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    october = month_of_two_lines()
    lay = keeping.printed

    def slowly(paper: Any, *, at: Any) -> bytes:
        monkeypatch.setattr(keeping, "printed", lay)
        asked(october)  # somebody else, meanwhile
        return b"%PDF-another"

    monkeypatch.setattr(keeping, "printed", slowly)
    assert asked(october).pdf == bytes(kept(october)[0].pdf) != b"%PDF-another"


def test_a_credit_note_says_what_is_given_back_of_which_lines_why_and_where_it_went() -> None:
    october = month_of_two_lines(200, 105)
    note = credit(october, {2: 50})
    told = said(note)
    assert (told.title, told.number, told.reason) == ("Credit note", "CN-2026-11-0001", WHY)
    assert told.headline.words == "given back of invoice 2026-10-0001"
    assert told.headline.more == "€0.50 less is to be paid."
    assert [(row[0], *row[2:]) for row in told.groups[0].rows] == [("2", "€1.05", "€0.50")]
    assert ("Invoice", "2026-10-0001") in told.facts


def test_a_credit_note_says_what_went_to_the_balance() -> None:
    october = month_of_two_lines(200, 105)
    collect(pay(october))
    note = credit(october, {2: 50})
    assert said(note).headline.more.startswith("€0.50 was paid already: it is on your balance")
    assert [each.label for each in said(note).sums] == ["Given back", "To your balance"]


def test_a_credit_note_is_kept_too() -> None:
    note = credit(month_of_two_lines(), {2: 50})
    first = keeping.credit_note_paper(note, now=NOW)
    assert first.name == "credit-note-CN-2026-11-0001.pdf"
    with as_staff():  # as an operator's page asks
        assert keeping.credit_note_paper(note, now=LATER) == first
    (paper,) = kept(note)
    assert (paper.content_sha256, paper.pdf_sha256) == (said(note).sha256, first.sha256)


def test_an_operator_who_asks_first_has_it_kept_for_its_tenant() -> None:
    october = month_of_two_lines()
    with as_staff():
        found = Invoice.objects.select_related("period", "tenant").get(pk=october.pk)
        first = asked(found)
    assert asked(october, now=LATER) == first


def test_no_paper_is_kept_of_a_draft_or_of_what_is_anothers() -> None:
    october, other = month_of_two_lines(), month_of_two_lines()
    row = {"content_sha256": "x", "pdf": b"x", "pdf_sha256": "x", "made_at": NOW}
    for invoice in (october.pk, draft_of(other)):
        with (
            pytest.raises(DatabaseError, match="a final invoice, or of a credit note, of its tenant"),
            transaction.atomic(),
            as_tenant(other.tenant_id),
        ):
            KeptPaper.objects.create(tenant_id=other.tenant_id, invoice_id=invoice, **row)


def draft_of(invoice: Invoice) -> str:
    with as_tenant(invoice.tenant_id):
        month = invoice.period
        month.pk, month.label = None, "2030-01"
        month.span = (at("2030-01-01 00:00:00"), at("2030-02-01 00:00:00"))
        month.save(force_insert=True)
        made = Invoice.objects.create(
            tenant_id=invoice.tenant_id, period=month, currency="EUR", refreshed_at=NOW
        )
        return str(made.pk)


def tenant_of(invoice: Invoice) -> Tenant:
    with as_tenant(invoice.tenant_id):
        return Tenant.objects.get(pk=invoice.tenant_id)


def test_what_grants_paid_is_said_and_what_goes_back_to_them() -> None:
    tenant, project = customer()
    give(tenant, 120)
    ran(project, sold(2 * EURO), at("2026-10-05 00:00:00"), HOUR)
    rating.rate_tenant(tenant, now=NOW)
    october = closing.close_period(tenant, "2026-10", now=NOW)
    assert october is not None
    told = said(october)
    assert [(each.label, each.amount) for each in told.sums] == [
        ("Total", "€2.00"),
        ("Paid by grants", "−€1.20"),
        ("Due", "€0.80"),
    ]
    assert told.headline.more.startswith("Of €2.00, €1.20 paid by grants.")
    note = said(credit(october))
    assert [(each.label, each.amount) for each in note.sums[1:]] == [
        ("Off what was due on the invoice", "€0.80"),
        ("To the grants that paid for it", "€1.20"),
    ]
    assert note.headline.more == "€0.80 less is to be paid. €1.20 was paid by grants, to which it goes back."
