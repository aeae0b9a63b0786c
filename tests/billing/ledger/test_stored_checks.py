"""Results of the invariant checks that run in the background."""

from datetime import datetime, timedelta

import pytest

from billing import tasks
from billing.models import InvariantRun
from billing.services.ledger import invariant_checks
from config.queues import MAINTENANCE, QUEUE_BY_TASK
from tenants.services.rls import staff_scope
from tests.billing.payments.payable_invoices import NOW, create_final_invoice, reload_invoice

pytestmark = pytest.mark.django_db


def failed(now: datetime) -> list[tuple[str, int]]:
    with staff_scope():
        return [(check.name, check.found) for check in invariant_checks.latest_checks(now=now) if not check.holds]


def test_pages_show_the_newest_run_and_when_it_was() -> None:
    create_final_invoice()
    invariant_checks.record_checks(now=NOW)
    with staff_scope():
        checks = invariant_checks.latest_checks(now=NOW + timedelta(hours=1))
    assert {check.checked_at for check in checks} == {NOW}
    assert [check.name for check in checks] == [each.name for each in invariant_checks.ALL_INVARIANTS]
    assert all(check.holds for check in checks)


def test_a_violation_is_shown_after_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    invoice = create_final_invoice()
    invariant_checks.record_checks(now=NOW)
    with staff_scope():
        results = invariant_checks.check_invariants(now=NOW)
    wrong = [type(results[0])("no oversell", "No unit is sold twice.", 2, (reload_invoice(invoice).pk,), NOW)]
    monkeypatch.setattr(invariant_checks, "check_invariants", lambda *, now: wrong)
    assert failed(NOW) == []
    invariant_checks.record_checks(now=NOW + timedelta(minutes=1))
    assert failed(NOW) == [("no oversell", 2)]


def test_without_any_run_pages_check_now() -> None:
    with staff_scope():
        checks = invariant_checks.latest_checks(now=NOW)
    assert len(checks) == len(invariant_checks.ALL_INVARIANTS)


def test_runs_are_kept_for_a_week() -> None:
    for days in (0, 5, 8):
        invariant_checks.record_checks(now=NOW + timedelta(days=days))
    with staff_scope():
        kept = set(InvariantRun.objects.values_list("checked_at", flat=True))
    assert kept == {NOW + timedelta(days=5), NOW + timedelta(days=8)}


def test_the_task_runs_beside_maintenance() -> None:
    tasks.check_integrity()
    assert QUEUE_BY_TASK["billing.check_integrity"] is MAINTENANCE
    with staff_scope():
        assert InvariantRun.objects.count() == 1
