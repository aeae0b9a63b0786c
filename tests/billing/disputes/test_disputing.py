"""A tenant disputes what it was charged: within a window, once at a time, and nobody goes after it meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from billing.domain.disputing import last_moment, undisputed
from billing.gateways.simulated import Ill
from billing.models import CreditNote, Dispute, DisputeStep, DunningStep, Invoice
from billing.services.crediting import NotCreditable
from billing.services.disputes import answering, asking, window
from billing.services.disputes.asking import DisputeOver, NotDisputable
from billing.services.dunning import reminding, standing
from billing.services.papers.invoices import of_invoice
from billing.services.payments.standing import stands
from billing.services.wallets import terms
from tenants.models import AuditEvent, Tenant
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines
from tests.billing.histories import OPERATOR, at
from tests.billing.ledger.ledgers import booked
from tests.billing.payments.bills import MIRA, NOW, collect, draft, fresh, ill, pay, sweep, taken
from tests.billing.tax.papers import ATELIER, LUMEN, october, taxed, told

pytestmark = pytest.mark.django_db
WHY = "that card was down all night"
DAY = timedelta(days=1)
UNTIL = at("2026-11-16 00:00:00")  # a fortnight after the first of November, that day not counted


def dispute(
    invoice: Invoice, lines: Mapping[int, int | None], *, reason: str = WHY, now: datetime = NOW
) -> Sequence[Dispute]:
    return asking.dispute(invoice, lines=lines, reason=reason, actor=MIRA, now=now)


def accept(found: Dispute, minor: int | None = None, *, answer: str = "", now: datetime = NOW) -> Dispute:
    return answering.accept(found, minor=minor, answer=answer, actor=OPERATOR, now=now)


def decline(found: Dispute, *, answer: str = "it ran all night", now: datetime = NOW) -> Dispute:
    return answering.decline(found, answer=answer, actor=OPERATOR, now=now)


def steps(found: Dispute) -> list[tuple[int, str, int, str, str]]:
    with as_tenant(found.tenant_id):
        rows = DisputeStep.objects.filter(dispute=found).order_by("n")
        return list(rows.values_list("n", "status", "minor", "words", "by"))


def all_of(invoice: Invoice) -> list[Dispute]:
    with as_tenant(invoice.tenant_id):
        return list(Dispute.objects.filter(invoice=invoice).order_by("opened_at", "pk"))


@pytest.mark.parametrize(
    ("zone", "final", "until"),
    [
        ("UTC", "2026-11-01 00:05:00", "2026-11-16 00:00:00"),
        ("America/New_York", "2026-10-20 12:00:00", "2026-11-04 05:00:00"),  # clocks go back in between
        ("Australia/Lord_Howe", "2026-09-30 13:30:00", "2026-10-15 13:00:00"),  # by half an hour
        ("Asia/Kolkata", "2026-11-01 18:29:59", "2026-11-15 18:30:00"),
        ("Asia/Kolkata", "2026-11-01 18:30:00", "2026-11-16 18:30:00"),
    ],
)
def test_the_window_is_so_many_days_of_the_tenants_own_zone(zone: str, final: str, until: str) -> None:
    assert last_moment(at(final), ZoneInfo(zone), days=14) == at(until)


def test_what_is_in_question_is_not_gone_after_and_never_less_than_nothing() -> None:
    assert (undisputed(300, []), undisputed(300, [100, 50]), undisputed(100, [150])) == (300, 150, 0)


def test_a_line_is_disputed_whole_or_in_part_and_nothing_is_booked_for_it() -> None:
    invoice = month_of_two_lines()
    before = booked(invoice)
    first, second = dispute(invoice, {2: None, 1: 50})
    assert [(each.line.n, each.minor, each.total, each.status) for each in (first, second)] == [
        (1, 50, 50, "open"),
        (2, 105, 105, "open"),
    ]
    assert steps(first) == [(0, "open", 50, WHY, MIRA.label)]
    assert (booked(invoice), fresh(invoice).due) == (before, 305)
    with as_tenant(invoice.tenant_id):
        trail = AuditEvent.objects.filter(action="dispute.open").order_by("pk")
        assert [(each.subject_id, each.detail["amount"], each.actor_label) for each in trail] == [
            (first.pk, 50, MIRA.label),
            (second.pk, 105, MIRA.label),
        ]


def test_an_invoice_says_until_when_and_keeps_saying_so(settings: Any) -> None:
    invoice = fresh(month_of_two_lines())
    assert (invoice.disputable_until, window.closes_at(invoice)) == (UNTIL, UNTIL)
    with as_tenant(invoice.tenant_id):
        assert "Until the end of 15 November 2026" in str(of_invoice(invoice).notes)
    settings.DISPUTE_DAYS = 3
    assert window.closes_at(invoice) == UNTIL
    with (
        as_tenant(invoice.tenant_id),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
    ):
        Invoice.objects.filter(pk=invoice.pk).update(disputable_until=UNTIL + DAY)


def test_where_nobody_may_an_invoice_says_nothing(settings: Any) -> None:
    settings.DISPUTE_DAYS = 0
    invoice = fresh(month_of_two_lines())
    assert invoice.disputable_until is None
    with as_tenant(invoice.tenant_id):
        assert "dispute" not in str(of_invoice(invoice).notes).lower()
    with pytest.raises(NotDisputable, match="No charge can be disputed here"):
        dispute(invoice, {1: None})
    settings.DISPUTE_DAYS = 14
    assert window.closes_at(invoice) == UNTIL  # as of any that became final before invoices said so


def test_it_can_be_disputed_until_the_last_second_of_the_window() -> None:
    invoice = month_of_two_lines()
    dispute(invoice, {1: None}, now=UNTIL - timedelta(seconds=1))
    with pytest.raises(NotDisputable, match="until the end of 15 November 2026"):
        dispute(invoice, {2: None}, now=UNTIL)


def test_a_draft_and_a_void_invoice_are_not_disputed() -> None:
    void = month_of_two_lines()
    with as_tenant(void.tenant_id):
        Invoice.objects.filter(pk=void.pk).update(status="void")
    for invoice in (draft(), void):
        assert window.closes_at(draft()) is None
        with pytest.raises(NotDisputable, match="This invoice is"):
            dispute(invoice, {1: None})
        assert all_of(invoice) == []


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ({1: 201}, "no more than €2.00"),
        ({9: None}, "no line 9"),
        ({9: 5}, "no line 9"),
        ({1: 0}, "nothing would be"),
        ({}, "No line is named"),
        (dict.fromkeys(range(1, 203)), "At most 200 lines"),
    ],
)
def test_what_is_not_there_is_not_disputed(lines: dict[int, int | None], why: str) -> None:
    invoice = month_of_two_lines()
    with pytest.raises(Invalid, match=why):
        dispute(invoice, lines)
    assert all_of(invoice) == []


def test_what_was_given_back_already_is_not_disputed() -> None:
    invoice = month_of_two_lines()
    credit(invoice, {1: 150})
    with pytest.raises(Invalid, match=r"no more than €0\.50"):
        dispute(invoice, {1: 51})
    (found,) = dispute(invoice, {1: None})
    assert found.minor == 50


@pytest.mark.parametrize("reason", ["", " \n", "x" * 501, "a\x00b"])
def test_a_dispute_has_a_reason(reason: str) -> None:
    invoice = month_of_two_lines()
    with pytest.raises(Invalid, match="A reason has"):
        dispute(invoice, {1: None}, reason=reason)


def test_a_line_has_one_open_dispute_and_none_of_the_others_is_written() -> None:
    invoice = month_of_two_lines()
    (first,) = dispute(invoice, {1: 50})
    with pytest.raises(NotDisputable, match="Line 1 is disputed already"):
        dispute(invoice, {1: 20, 2: None})
    assert [each.pk for each in all_of(invoice)] == [first.pk]
    with as_tenant(invoice.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        Dispute.objects.create(
            tenant_id=invoice.tenant_id, invoice=invoice, line=first.line, minor=1, currency="EUR", reason="x",
            opened_at=NOW, opened_by="x",
        )  # fmt: skip
    decline(first)
    (again,) = dispute(invoice, {1: 20})
    assert again.status == "open"


def test_accepted_in_full_is_a_credit_note_with_its_tax_and_linked(settings: Any) -> None:
    invoice = a_taxed_month(settings)
    (found,) = dispute(invoice, {1: None})
    assert (found.minor, found.tax_minor) == (200, 38)
    done = accept(found)
    assert done.credit_note is not None
    assert (done.status, done.credit_note.total, done.credit_note.tax) == ("accepted", 238, 38)
    assert done.credit_note.reason == done.answer == "You are right: all of it is given back."
    assert steps(done)[1:] == [(1, "accepted", 200, done.answer, OPERATOR.label)]


def test_accepted_in_part_gives_back_no_more_than_that() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: 150})
    for much in (151, 0, -1):
        with pytest.raises(Invalid, match=r"Up to €1\.50 is in question"):
            accept(found, much)
    done = accept(found, 40, answer="an hour of it")
    assert done.credit_note is not None
    assert (done.credit_note.total, done.credit_note.reason, done.answer) == (
        40,
        "an hour of it",
        "an hour of it",
    )
    assert fresh(invoice).due == 265


def test_more_is_not_given_back_than_is_left_of_the_line_by_then() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: None})
    credit(invoice, {1: 150})
    with pytest.raises(Invalid, match=r"no more than €0\.50"):
        accept(found, 51)
    assert accept(found, 50).status == "accepted"


def test_declined_with_a_reason_leaves_the_invoice_as_it_is() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: None})
    with pytest.raises(Invalid, match="A reason has"):
        decline(found, answer=" ")
    done = decline(found)
    assert (done.status, done.answer, fresh(invoice).due) == ("declined", "it ran all night", 305)
    with as_tenant(invoice.tenant_id):
        assert not CreditNote.objects.exists()


def test_each_ends_once() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: None})
    asking.withdraw(found, actor=MIRA, now=NOW)
    assert [status for _, status, *_ in steps(found)] == ["open", "withdrawn"]
    for again in (accept, decline, lambda each: asking.withdraw(each, actor=MIRA, now=NOW)):
        with pytest.raises(DisputeOver, match="It is withdrawn since 01 Nov 2026"):
            again(found)
    with (
        as_tenant(invoice.tenant_id),
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
    ):
        Dispute.objects.filter(pk=found.pk).update(status="open", closed_at=None)
    for attack in (Dispute, DisputeStep):
        with (
            as_tenant(invoice.tenant_id),
            pytest.raises(DatabaseError, match=r"append-only|permission denied"),
            transaction.atomic(),
        ):
            attack.objects.all()._raw_delete("default")  # type: ignore[attr-defined]


def test_nothing_is_given_back_while_a_payment_may_have_taken_it() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: None})
    payment = pay(invoice)  # by a person, who may pay all of it all the same
    with pytest.raises(NotCreditable, match="under way"):
        accept(found)
    collect(payment)
    done = accept(found)
    assert done.credit_note is not None
    assert done.credit_note.to_balance == 200


def test_no_payment_begins_by_itself_while_it_is_open() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: 50})
    with as_tenant(invoice.tenant_id):
        assert not stands(fresh(invoice)).unasked
    sweep(NOW)
    assert taken(invoice) == []
    accept(found)
    with as_tenant(invoice.tenant_id):
        assert stands(fresh(invoice)).unasked
    sweep(NOW)
    assert taken(invoice) == [255]


def test_one_that_is_disputed_as_it_is_to_be_asked_for_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from billing.services.payments import opening

    invoice = month_of_two_lines()
    dispute(invoice, {1: 50})
    monkeypatch.setattr(opening, "_due", lambda now: [(invoice.pk, invoice.tenant_id)])
    assert opening.open_due(now=NOW) == 0


def reminded(invoice: Invoice) -> list[tuple[str, int]]:
    with as_tenant(invoice.tenant_id):
        return list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("action", "minor"))


def declined_payment(invoice: Invoice) -> None:
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))


def test_only_what_is_not_disputed_is_gone_after() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    dispute(invoice, {1: None})
    reminding.remind_due(now=NOW + 18 * DAY)
    assert reminded(invoice) == [("remind", 105)]
    with as_tenant(invoice.tenant_id):
        assert "€1.05" in terms.of(invoice.tenant).why


def test_what_is_disputed_whole_is_not_gone_after_and_has_its_days_again_once_it_is_answered() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    found = dispute(invoice, {1: None, 2: None})
    reminding.remind_due(now=NOW + 40 * DAY)
    assert reminded(invoice) == []
    for each in found:
        decline(each, now=NOW + 40 * DAY)
    reminding.remind_due(now=NOW + 42 * DAY)
    assert reminded(invoice) == []
    reminding.remind_due(now=NOW + 43 * DAY)
    assert reminded(invoice) == [("remind", 305)]


def test_while_any_of_it_is_disputed_it_is_only_reminded_of() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    for days in (18, 25, 32, 45, 60):
        reminding.remind_due(now=NOW + days * DAY)
    assert [action for action, _ in reminded(invoice)] == ["remind", "remind"]
    asking.withdraw(found, actor=MIRA, now=NOW + 60 * DAY)
    reminding.remind_due(now=NOW + 60 * DAY)
    assert reminded(invoice)[-1] == ("suspend", 305)


def test_whoever_withdraws_gains_no_days_by_it() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    for each in dispute(invoice, {1: None, 2: None}):
        asking.withdraw(each, actor=MIRA, now=NOW + 18 * DAY)
    reminding.remind_due(now=NOW + 18 * DAY)
    assert reminded(invoice) == [("remind", 305)]


def test_who_disputes_all_that_was_gone_after_stands_well_until_it_is_answered(settings: Any) -> None:
    settings.DISPUTE_DAYS = 30
    invoice = month_of_two_lines()
    declined_payment(invoice)
    reminding.remind_due(now=NOW + 18 * DAY)
    assert standing.lift(now=NOW + 18 * DAY) == 0
    found = dispute(invoice, {1: None, 2: None}, now=NOW + 18 * DAY)
    assert standing.lift(now=NOW + 18 * DAY) == 1
    for each in found:
        asking.withdraw(each, actor=MIRA, now=NOW + 19 * DAY)
    with as_tenant(invoice.tenant_id):
        assert terms.of(invoice.tenant).standing == "grace"
    assert standing.lift(now=NOW + 19 * DAY) == 0


def test_each_step_is_told_by_letter(
    letters: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    invoice = month_of_two_lines()
    with as_tenant(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
    told(tenant, replace(ATELIER, email="money@kestrel.example"))
    with django_capture_on_commit_callbacks(execute=True):
        first, second = dispute(invoice, {1: 50, 2: None})
        accept(first)
        decline(second)
    with django_capture_on_commit_callbacks(execute=True):
        (third,) = dispute(invoice, {2: None})
        asking.withdraw(third, actor=MIRA, now=NOW)
    assert {to for to, _ in letters} == {"money@kestrel.example"}
    texts = [text for _, text in letters]
    assert [text.splitlines()[0].partition(": ")[2] for text in texts] == [
        "your dispute is open",
        "your dispute is accepted",
        "your dispute is declined",
        "your dispute is open",
        "the dispute is withdrawn",
    ]
    assert "€0.50 of line 1, €1.05 of line 2 of invoice 2026-10-0001 for October 2026" in texts[0]
    assert "Credit note CN-2026-11-0001 gives €0.50 back" in texts[1]
    assert "it ran all night" in texts[2]


def a_taxed_month(settings: Any) -> Invoice:
    settings.SUPPLIER = LUMEN.as_dict()
    taxed()
    return october(200, 105)
