"""What meets an open dispute from another side: a credit note, a payment, dunning, another worker."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connection

from billing.domain.disputing import rests
from billing.services.disputes import asking, outcome, window
from billing.services.disputes.asking import NotDisputable
from billing.services.dunning import reminding, standing
from billing.services.payments.standing import stands
from billing.services.wallets import terms
from ports import payments
from tenants.services.refusals import Invalid
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit, month_of_two_lines
from tests.billing.disputes.test_disputing import (
    a_taxed_month,
    accept,
    decline,
    declined_payment,
    dispute,
    reminded,
    steps,
)
from tests.billing.ledger.ledgers import booked
from tests.billing.payments.bills import MIRA, NOW, collect, fresh, pay, sweep, taken
from tests.database import OwnDatabase

DAY = timedelta(days=1)
DUE = NOW + 14 * DAY


@pytest.mark.django_db
def test_what_was_given_back_of_a_disputed_line_holds_back_nothing_of_the_others() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    dispute(invoice, {1: None})
    credit(invoice, {1: 200})
    with as_tenant(invoice.tenant_id):
        assert (window.chased(fresh(invoice)), window.of(fresh(invoice))) == (105, [])
        assert stands(fresh(invoice)).unasked
    reminding.remind_due(now=DUE + 3 * DAY)
    assert reminded(invoice) == [("remind", 105)]


@pytest.mark.django_db
def test_of_what_was_given_back_in_part_only_the_rest_is_held_back() -> None:
    invoice = month_of_two_lines()
    dispute(invoice, {1: 150})
    credit(invoice, {1: 120})
    with as_tenant(invoice.tenant_id):
        assert window.chased(fresh(invoice)) == 105
    credit(invoice, {1: 80})
    sweep(NOW)
    assert taken(invoice) == [105]


@pytest.mark.django_db
def test_beside_an_open_dispute_every_line_can_be_credited() -> None:
    invoice = month_of_two_lines()
    (first,) = dispute(invoice, {1: 150})
    credit(invoice, {2: 50})
    credit(invoice, {1: 120})
    credit(invoice, {2: 55})
    done = accept(first)
    assert done.credit_note is not None
    assert (done.credit_note.total, steps(done)[1][2]) == (80, 80)
    assert done.answer == "You are right about a part: €0.80 of €1.50 is given back."
    assert fresh(invoice).due == 0


@pytest.mark.django_db
def test_where_all_was_given_back_accepting_names_that_note_and_books_nothing() -> None:
    invoice = month_of_two_lines()
    first, second = dispute(invoice, {1: 150, 2: None})
    note = credit(invoice)
    before = booked(invoice)
    with pytest.raises(Invalid, match=r"€2\.00 was given back by now: no more than €0\.00 is left"):
        accept(first, 10)
    for each in (first, second):
        done = accept(each)
        assert (done.status, done.credit_note, done.answer) == (
            "accepted",
            note,
            "You are right: it was given back before.",
        )
        assert steps(done)[1][2] == 0
    assert booked(invoice) == before


@pytest.mark.django_db
def test_a_part_that_is_given_back_is_called_a_part() -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: 150})
    done = accept(found, 40)
    assert done.answer == "You are right about a part: €0.40 of €1.50 is given back."


@pytest.mark.django_db
@pytest.mark.parametrize("length", [150, 151, 500])
def test_an_answer_is_never_cut(length: int) -> None:
    invoice = month_of_two_lines()
    (found,) = dispute(invoice, {1: None}, reason="y" * 500)
    done = accept(found, answer="x" * length)
    assert done.credit_note is not None
    assert done.answer == "x" * length
    told = "Line 1 was disputed; the answer stands with the dispute on the invoice's page."
    assert done.credit_note.reason == ("x" * 150 if length == 150 else told)


@pytest.mark.django_db
def test_who_was_given_back_all_that_was_due_stands_well() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    reminding.remind_due(now=DUE + 3 * DAY)
    found = dispute(invoice, {1: None, 2: None})
    assert standing.lift(now=DUE + 4 * DAY) == 1
    for each in found:
        accept(each, now=DUE + 4 * DAY)
        with as_tenant(invoice.tenant_id):
            expected = "grace" if each.line.n == 1 else "good"
            stood = terms.of(invoice.tenant).standing
            assert stood in ("good", expected)
    with as_tenant(invoice.tenant_id):
        assert terms.of(invoice.tenant).standing == "good"


@pytest.mark.django_db
def test_a_line_is_disputed_so_often_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MOST_OF_A_LINE", 2)
    invoice = month_of_two_lines()
    for _ in range(2):
        (found,) = dispute(invoice, {1: None})
        asking.withdraw(found, actor=MIRA, now=NOW)
    with pytest.raises(NotDisputable, match="Line 1 was disputed 2 times"):
        dispute(invoice, {1: None, 2: None})
    assert dispute(invoice, {2: None})


@pytest.mark.django_db
def test_many_lines_are_disputed_in_as_many_queries_as_few(django_assert_max_num_queries: Any) -> None:
    invoice = month_of_two_lines(*range(101, 131))
    with django_assert_max_num_queries(30 + 3 * 30):
        assert len(dispute(invoice, dict.fromkeys(range(1, 31)))) == 30


@pytest.mark.django_db
def test_only_the_disputed_part_has_its_days_anew_after_an_answer() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    reminding.remind_due(now=DUE + 3 * DAY)
    decline(found, now=DUE + 4 * DAY)
    reminding.remind_due(now=DUE + 10 * DAY)  # the rest's day; the disputed line has three days more
    assert reminded(invoice) == [("remind", 105), ("remind", 105)]
    reminding.remind_due(now=DUE + 17 * DAY)
    assert reminded(invoice)[2:] == [("suspend", 105)]
    reminding.remind_due(now=DUE + 34 * DAY)
    assert reminded(invoice)[3:] == [("end", 305)]


@pytest.mark.django_db
def test_what_is_more_than_a_letter_leaves_the_days_between_two_steps_after_an_answer() -> None:
    invoice = month_of_two_lines()
    declined_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    for days in (3, 10, 40):
        reminding.remind_due(now=DUE + days * DAY)
    accept(found, 50, now=DUE + 40 * DAY)
    for days in (40, 46):
        reminding.remind_due(now=DUE + days * DAY)
    assert [action for action, _ in reminded(invoice)] == ["remind", "remind"]
    reminding.remind_due(now=DUE + 47 * DAY)
    assert reminded(invoice)[2:] == [("suspend", 105)]


@pytest.mark.django_db
def test_where_the_first_step_is_no_letter_an_answer_leaves_its_days(settings: Any) -> None:
    settings.DUNNING = ("3:suspend",)
    invoice = month_of_two_lines()
    declined_payment(invoice)
    (found,) = dispute(invoice, {1: None})
    decline(found, now=DUE + 3 * DAY)
    reminding.remind_due(now=DUE + 5 * DAY)
    assert reminded(invoice) == []
    reminding.remind_due(now=DUE + 6 * DAY)
    assert reminded(invoice) == [("suspend", 305)]


def test_a_line_that_was_answered_twice_waits_with_no_more_than_is_left() -> None:
    assert rests([]) == 0
    assert rests([(1, 150, 200), (1, 150, 200), (2, 30, 105), (3, -5, 10)]) == 230


@pytest.fixture
def collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield


def test_what_is_disputed_as_it_is_to_be_ended_runs_on(
    own_database: OwnDatabase, collected: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DUNNING = ("3:end",)
    invoice = month_of_two_lines()
    declined_payment(invoice)
    ended, written, go = [], Event(), Event()
    monkeypatch.setattr(reminding, "_end_all", lambda *asked: ended.append(asked))

    def disputes() -> None:
        try:
            with as_tenant(invoice.tenant_id):
                dispute(invoice, {1: None, 2: None})
                written.set()
                go.wait(20)
        finally:
            connection.close()

    def presses() -> None:
        try:
            reminding.remind_due(now=DUE + 3 * DAY)
        finally:
            connection.close()

    early, late = Thread(target=disputes), Thread(target=presses)
    early.start()
    assert written.wait(20)
    late.start()
    late.join(1)
    assert late.is_alive(), "it did not wait"
    go.set()
    for thread in (early, late):
        thread.join(20)
    assert (ended, reminded(invoice)) == ([], [])


@pytest.mark.django_db
def test_what_becomes_of_the_money_is_said_as_it_is(settings: Any) -> None:
    invoice = a_taxed_month(settings)
    with as_tenant(invoice.tenant_id):
        due = outcome.awaited(fresh(invoice), 238, paying=False)
        assert "Nobody goes after €2.38" in due
        assert "comes off what is due" in due
        assert "no payment of the invoice begins by itself" in outcome.hint(fresh(invoice), paying=False)
    payment = pay(invoice)
    with as_tenant(invoice.tenant_id):
        assert outcome.under_way(invoice)
        assert "is under way" in outcome.awaited(fresh(invoice), 238, paying=True)
        assert "under way" in outcome.hint(fresh(invoice), paying=True)
    collect(payment)
    with as_tenant(invoice.tenant_id):
        assert not outcome.under_way(invoice)
        paid = outcome.awaited(fresh(invoice), 238, paying=False)
        assert "€2.38 is paid already" in paid
        assert "goes to your balance, and can be sent back to your card from there; what credit" in paid
        with payments.through(None):
            nobody = outcome.awaited(fresh(invoice), 238, paying=False)
        assert "goes to your balance; what credit paid is credit again." in nobody
        assert "The invoice is paid" in outcome.hint(fresh(invoice), paying=False)
    (found,) = dispute(invoice, {1: None})
    done = accept(found)
    assert done.credit_note is not None
    assert outcome.given(done.credit_note) == "€2.38 went to your balance."


@pytest.mark.django_db
def test_of_what_is_paid_in_part_both_parts_are_named() -> None:
    invoice = month_of_two_lines()
    credit(invoice, {2: 105})
    invoice = fresh(invoice)
    invoice.settled += 50  # as where a balance was drawn
    told = outcome.awaited(invoice, 200, paying=False)
    assert "Nobody goes after €1.50 of €2.00" in told
    assert "the rest is paid already" in told
