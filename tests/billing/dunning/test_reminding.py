"""An invoice that is not paid in time: who is told, how its tenant stands, what ends, and that paying mends it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, transaction
from django.test import Client

from billing.gateways.simulated import Ill
from billing.models import DunningStep, Invoice, TenantStanding
from billing.services import closing, rating
from billing.services.dunning import plan, reminding, standing
from billing.services.dunning.reminding import BILLING
from billing.services.tax import details
from billing.services.wallets import terms
from broker.domain.states import EndReason, LeaseState
from ports import clock, mail
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Tenant
from tenants.services.walls import as_tenant
from tests.billing.credits.notes import credit
from tests.billing.histories import HOUR, at, ran, sold
from tests.billing.payments.bills import bill, collect, fresh, ill, pay
from tests.billing.tax.papers import ATELIER, told
from tests.tenants.people import Api
from tests.world import Home, alive, home, offering
from tests.world import fresh as lease_now

pytestmark = pytest.mark.django_db
DUE = at("2026-11-15 00:05:00")  # two weeks after it became final
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    from billing.gateways.simulated import SimulatedGateway
    from ports import payments
    from tests.billing.payments.bills import heard

    with payments.through(SimulatedGateway()), heard():
        yield


@pytest.fixture
def letters(django_capture_on_commit_callbacks: Any) -> Iterator[list[tuple[str, str]]]:
    sent: list[tuple[str, str]] = []
    with mail.carried_by(lambda to, subject, text: sent.append((to, f"{subject}\n{text}"))):
        yield sent


def steps(invoice: Invoice) -> list[tuple[str, int]]:
    with as_tenant(invoice.tenant_id):
        return list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("action", "minor"))


def stands(tenant_id: str) -> str:
    with as_tenant(tenant_id):
        return terms.of(Tenant.objects.get(pk=tenant_id)).standing


def unpaid() -> Invoice:
    invoice = bill()
    ill(invoice, Ill.DECLINED)
    collect(pay(invoice))
    return fresh(invoice)


def test_step_after_step_on_its_day_and_paying_mends_all() -> None:
    invoice = unpaid()
    assert invoice.due_at == DUE
    assert reminding.remind_due(now=DUE + 3 * DAY - timedelta(seconds=1)) == 0
    for days, action, worse in (
        (3, "remind", "grace"),
        (10, "remind", "grace"),
        (17, "suspend", "suspended"),
        (30, "end", "suspended"),
    ):
        assert reminding.remind_due(now=DUE + days * DAY) == 1
        assert reminding.remind_due(now=DUE + days * DAY) == 0
        assert steps(invoice)[-1] == (action, 200)
        assert stands(invoice.tenant_id) == worse
    assert reminding.remind_due(now=DUE + 300 * DAY) == 0
    assert standing.lift(now=DUE + 31 * DAY) == 0
    ill(invoice, Ill.NONE)
    collect(pay(invoice))
    assert standing.lift(now=DUE + 31 * DAY) == 1
    assert stands(invoice.tenant_id) == "good"
    assert standing.lift(now=DUE + 31 * DAY) == 0


def test_who_is_reminded_late_is_given_the_same_days() -> None:
    invoice = unpaid()
    late = DUE + 40 * DAY
    assert [reminding.remind_due(now=late + n * DAY) for n in (0, 1, 6, 7)] == [1, 0, 0, 1]
    assert steps(invoice) == [("remind", 200)] * 2


def test_what_is_paid_credited_or_being_paid_is_left_alone() -> None:
    paid, credited, under_way = bill(), unpaid(), bill()
    collect(pay(paid))
    credit(credited)
    ill(under_way, Ill.LOST)
    collect(pay(under_way))
    assert reminding.remind_due(now=DUE + 3 * DAY) == 0


def test_what_operators_decided_is_theirs() -> None:
    from tests.billing.histories import OPERATOR

    invoice = unpaid()
    with as_tenant(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
    suspended = {"payment": "invoice", "standing": TenantStanding.SUSPENDED, "why": "abuse"}
    terms.set_terms(tenant, **suspended, actor=OPERATOR, now=DUE)  # type: ignore[arg-type]
    reminding.remind_due(now=DUE + 3 * DAY)
    ill(invoice, Ill.NONE)
    collect(pay(invoice))
    assert standing.lift(now=DUE + 4 * DAY) == 0
    assert stands(invoice.tenant_id) == "suspended"


def test_letters_go_to_whoever_pays_once_all_is_written(
    letters: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    invoice = unpaid()
    with as_tenant(invoice.tenant_id):
        told(Tenant.objects.get(pk=invoice.tenant_id), ATELIER)
    with django_capture_on_commit_callbacks(execute=True):
        reminding.remind_due(now=DUE + 3 * DAY)
    assert letters == []  # nobody owns it and no address was given
    owner = home("Kestrel")
    payer = owner.member(Role.BILLING)
    owner.member(Role.VIEWER)
    with as_tenant(owner.tenant.pk):
        details.tell(
            owner.tenant, told=replace(ATELIER, email="books@kestrel.example"), actor=BILLING, now=DUE
        )
    ran(owner.project, sold(2 * 10**9), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=at("2026-11-01 00:05:00"))
    mine = closing.close_period(owner.tenant, "2026-10", now=at("2026-11-01 00:05:00"))
    assert mine is not None
    with django_capture_on_commit_callbacks(execute=True):
        reminding.remind_due(now=DUE + 3 * DAY)
    addresses = [to for to, _ in letters]
    assert {payer.email, "books@kestrel.example"} <= set(addresses)
    assert len(addresses) == len(set(addresses)) <= 3  # and whoever owns it
    for _, text in letters:
        assert text.startswith(f"Invoice {mine} is overdue\n€2.00 of invoice {mine} for October 2026")
        assert f"/invoices/{mine.pk}/" in text


def test_in_the_end_what_runs_is_ended_as_unpaid() -> None:
    with alive() as life:
        from tests.billing.histories import EURO, LONG_AGO, reprice
        from tests.world import fleet

        fleet()
        reprice(offering(), EURO, since=LONG_AGO)
        kestrel: Home = home("Kestrel")
        lease = life.lease(kestrel, offering(), max_duration_s=9 * HOUR)
        with as_tenant(kestrel.tenant.pk):
            reminding._end_all(kestrel.tenant, life.now)
            reminding._end_all(kestrel.tenant, life.now)
        found = lease_now(lease)
        assert (found.state, found.end_reason) == (LeaseState.RELEASING, EndReason.UNPAID)


def test_one_that_the_database_refuses_keeps_nobody_elses_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = unpaid(), unpaid()
    note = reminding._note

    def refuse(invoice: Invoice, *rest: Any) -> None:
        if invoice.pk == first.pk:
            raise DatabaseError("no")
        note(invoice, *rest)

    monkeypatch.setattr(reminding, "_note", refuse)
    assert reminding.remind_due(now=DUE + 3 * DAY) == 1
    assert (steps(first), steps(second)) == ([], [("remind", 200)])


def test_of_two_workers_one_takes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = unpaid()
    look, looks = reminding._due, []

    def slow(*asked: Any) -> Any:
        looks.append(asked)
        return look(*asked) if len(looks) == 1 else None  # somebody else did it meanwhile

    monkeypatch.setattr(reminding, "_due", slow)
    assert reminding.remind_due(now=DUE + 3 * DAY) == 0
    assert steps(invoice) == []


def test_without_steps_nobody_is_reminded_and_what_is_none_stops_the_start(settings: Any) -> None:
    unpaid()
    settings.DUNNING = ()
    assert reminding.remind_due(now=DUE + 300 * DAY) == 0
    settings.DUNNING = ("soon",)
    with pytest.raises(ImproperlyConfigured, match="GPUBROKER_DUNNING: 'soon' is no step"):
        plan.steps()


def test_the_trail_says_what_was_done_and_no_step_is_ever_changed() -> None:
    invoice = unpaid()
    reminding.remind_due(now=DUE + 3 * DAY)
    with as_tenant(invoice.tenant_id):
        event = AuditEvent.objects.get(action="invoice.remind")
        assert (event.detail["step"], event.detail["due"]) == ("remind", "€2.00")
        with pytest.raises(DatabaseError, match=r"append-only|permission denied"), transaction.atomic():
            DunningStep.objects.update(minor=1)


def test_the_invoice_says_on_its_page_and_over_the_api_what_was_done(settings: object) -> None:
    owner = home("Kestrel")
    ran(owner.project, sold(2 * 10**9), at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=at("2026-11-01 00:05:00"))
    invoice = closing.close_period(owner.tenant, "2026-10", now=at("2026-11-01 00:05:00"))
    assert invoice is not None
    now = DUE + 3 * DAY
    reminding.remind_due(now=now)
    client = Client()
    client.force_login(owner.member(Role.BILLING))
    with clock.standing_at(now):
        page = client.get(f"/invoices/{invoice.pk}/").content.decode()
        assert "Overdue, €2.00: a reminder was written" in page
        assert "overdue" in client.get("/invoices/").content.decode()
        api: Any = Api(owner.token(Role.BILLING, now=now))
        found = api.ask("GET", f"invoices/{invoice.pk}").json()["reminders"]
    assert [(each["action"], each["due"]["amount"]) for each in found] == [("remind", "2.000000")]
