"""Real commits, several workers: nothing is passed over, nothing is charged twice, no number is lost."""

from collections.abc import Callable
from threading import Event, Thread

from django.db import connection

from billing.models import InvoiceSeries
from billing.services import closing, drafts, rating
from tenants.services.walls import as_tenant
from tests.billing.histories import EURO, HOUR, at, charges, customer, invoices, ran, sold
from tests.database import OwnDatabase

NOW = at("2026-11-21 09:00:00")
WORKERS = 4


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run each in a thread with a connection of its own; return what went wrong."""
    wrong: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return wrong


def test_b11_a_transaction_that_commits_after_the_run_is_charged_by_the_next(
    own_database: OwnDatabase,
) -> None:
    tenant, project = customer()
    offering = sold(EURO)
    written, may_commit = Event(), Event()

    def slowly() -> None:
        with as_tenant(tenant.pk):
            ran(project, offering, at("2026-11-20 08:00:00"), HOUR)
            written.set()
            may_commit.wait(30)

    def meanwhile() -> None:
        written.wait(30)
        ran(project, offering, at("2026-11-20 10:00:00"), 60)
        assert rating.rate(now=NOW).written == 1
        may_commit.set()

    assert together(slowly, meanwhile) == []
    assert rating.rate(now=NOW).written == 1
    assert sorted(charge.unit_seconds for charge in charges(tenant)) == [60, HOUR]
    assert rating.rate(now=NOW).written == 0


def test_news_that_come_while_a_month_is_closed_stand_on_an_invoice(own_database: OwnDatabase) -> None:
    """A run that charges them to the month which is being closed would charge them to an invoice that is final."""
    tenant, project = customer()
    offering = sold(EURO)
    ran(project, offering, at("2026-10-05 00:00:00"), HOUR)
    rating.rate(now=NOW)
    closed, charged = Event(), Event()

    def close() -> None:
        with as_tenant(tenant.pk):
            closing.close_period(tenant, "2026-10", now=NOW)
            closed.set()
            charged.wait(2)  # in vain where the run waits for us, as it should

    def late() -> None:
        closed.wait(30)
        ran(project, offering, at("2026-10-31 22:00:00"), 60)
        rating.rate(now=NOW)
        charged.set()

    assert together(close, late) == []
    drafts.refresh(tenant, now=NOW)
    first, second = invoices(tenant)
    assert (first.status, first.total) == ("finalized", 100)
    assert (second.status, second.total) == ("draft", 2)


def test_workers_that_rate_and_draft_at_once_charge_everything_once(own_database: OwnDatabase) -> None:
    offering = sold(EURO)
    customers = [customer() for _ in range(3)]
    for _, project in customers:
        for day in range(1, 11):
            ran(project, offering, at(f"2026-11-{day:02d} 08:00:00"), HOUR)

    def work() -> None:
        for tenant_id in rating.rate(now=NOW).tenants:
            drafts.refresh_all([tenant_id], now=NOW)

    assert together(*[work] * WORKERS) == []
    for tenant, _ in customers:
        assert len(charges(tenant)) == 10
        drafts.refresh(tenant, now=NOW)
        assert [invoice.total for invoice in invoices(tenant)] == [1000]


def test_b36_workers_that_close_at_once_hand_out_every_number_once(own_database: OwnDatabase) -> None:
    offering = sold(EURO)
    customers = [customer() for _ in range(8)]
    for _, project in customers:
        ran(project, offering, at("2026-10-05 08:00:00"), HOUR)
    rating.rate(now=NOW)

    def work() -> None:
        closing.close_due(now=NOW)

    assert together(*[work] * WORKERS) == []
    numbers = [invoice.number for tenant, _ in customers for invoice in invoices(tenant)]
    assert sorted(numbers) == list(range(1, 9))
    assert InvoiceSeries.objects.get().next_number == 9
