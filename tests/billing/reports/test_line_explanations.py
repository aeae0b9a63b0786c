"""Explanations of invoice lines by their leases."""

from datetime import timedelta
from unittest.mock import patch

import pytest

from billing.models import InvoiceLine
from billing.services.invoicing import drafts
from billing.services.invoicing.month_close import close_month
from billing.services.rating import lease_rating, recount
from billing.services.reports.line_explanations import ExplainedLine, explain_invoice_line
from broker.models import Lease
from tenants.models import Project, Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import (
    EURO,
    HOUR,
    S,
    add_ended_lease,
    add_lease_history,
    add_running_lease,
    create_customer,
    create_priced_offering,
    invoices_of,
    set_price,
    utc,
)

pytestmark = pytest.mark.django_db
NOW = utc("2026-11-21 09:00:00")
START = utc("2026-11-02 00:00:00")


def explain_line(tenant: Tenant, number: int = 1, *, most: int | None = None) -> ExplainedLine:
    lease_rating.rate_all_leases(now=NOW)
    drafts.refresh_drafts(tenant, now=NOW)
    invoice = invoices_of(tenant)[-1]
    with tenant_scope(tenant.pk):
        line = InvoiceLine.objects.select_related("invoice").get(invoice=invoice, n=number)
        return explain_invoice_line(line, most=most)


@pytest.fixture
def kestrel() -> tuple[Tenant, Project]:
    return create_customer("Europe/Berlin")


def test_a_line_explains_states_seconds_price_and_rounding(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    hours = [0, 1, 2, 5, 6, 7]
    states = [S.REQUESTED, S.QUEUED, S.PROVISIONING, S.ACTIVE, S.RELEASING, S.RELEASED]
    steps = [(START + timedelta(hours=h), s) for h, s in zip(hours, states, strict=True)]
    lease = add_lease_history(project, create_priced_offering(1_340_000_000), steps, quantity=2)
    found = explain_line(tenant)
    (use,) = found.leases
    assert [(w.state, w.seconds, w.charged) for w in use.windows] == [
        (S.REQUESTED, HOUR, False),
        (S.QUEUED, HOUR, False),
        (S.PROVISIONING, 3 * HOUR, False),
        (S.ACTIVE, HOUR, True),
        (S.RELEASING, HOUR, False),
    ]
    assert use.windows[2].why == "not charged: starting"
    assert (use.lease, use.name, use.unit_seconds, use.windows[3].unit_seconds) == (
        lease.pk,
        lease.name,
        2 * HOUR,
        2 * HOUR,
    )
    assert found.rule.sum == "7,200 s × 1.340000000 €/h ÷ 3600 s/h = 2.680000 € → 2.68 €"
    assert (found.price.nano_per_hour, found.recomputed_minor, found.recomputed_equal) == (
        1_340_000_000,
        268,
        True,
    )


def test_a_line_shows_usage_charged_at_another_price_on_another_line(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    set_price(offering, 2 * EURO, since=START + timedelta(minutes=30))
    add_ended_lease(project, offering, START, HOUR)
    before, after = explain_line(tenant, 1), explain_line(tenant, 2)
    assert [(w.seconds, w.charged) for w in before.leases[0].windows] == [(1800, True), (1800, False)]
    assert [(w.seconds, w.charged) for w in after.leases[0].windows] == [(1800, False), (1800, True)]
    assert before.leases[0].windows[1].why == "charged at another price, on another line"
    assert (before.recomputed_equal, after.recomputed_equal) == (True, True)


def test_a_line_explanation_shows_only_its_own_months(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    add_ended_lease(project, create_priced_offering(EURO), utc("2026-10-31 22:00:00"), 3 * HOUR)
    found = explain_line(tenant)
    assert [(w.start, w.seconds) for w in found.leases[0].windows] == [(utc("2026-10-31 23:00:00"), 2 * HOUR)]
    assert found.recomputed_equal


def test_many_leases_are_summed_and_only_the_first_are_shown(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    for _ in range(5):
        add_ended_lease(project, offering, START, HOUR)
    found = explain_line(tenant, most=2)
    assert (len(found.leases), found.leases_total, found.recomputed_exact) == (2, 5, 5 * HOUR * EURO)
    assert found.recomputed_equal
    assert found.rule.steps[-2:][0] == "5 stretches of use together: 18,000 s"


def test_a_line_with_more_leases_than_query_parameters_is_explained(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    lease = add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    with tenant_scope(tenant.pk):
        steps = recount.lease_steps([lease.pk, *(f"lse_{n}" for n in range(70_000))])
    assert list(steps) == [lease.pk]


def test_late_usage_is_explained_on_the_invoice_that_bills_it(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    offering = create_priced_offering(EURO)
    add_running_lease(project, offering, utc("2026-10-31 22:00:00"))
    close_month.close_due_months(now=utc("2026-11-01 00:00:00"))
    with tenant_scope(tenant.pk):
        owner = Lease.objects.select_related("project").get().project
    late = add_ended_lease(owner, offering, utc("2026-10-31 20:00:00"), HOUR)
    found = explain_line(tenant)
    assert [use.lease for use in found.leases] == [late.pk]
    assert found.leases[0].windows[0].charged
    assert found.recomputed_equal
    october = invoices_of(tenant)[0]
    with tenant_scope(tenant.pk):
        closed = explain_invoice_line(InvoiceLine.objects.select_related("invoice").get(invoice=october))
    assert closed.recomputed_equal


def test_a_recomputed_difference_is_reported(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    add_ended_lease(project, create_priced_offering(EURO), START, HOUR)
    with patch.object(recount, "recount_line", return_value={}):
        found = explain_line(tenant)
    assert (found.recomputed_exact, found.recomputed_equal) == (0, False)
    assert explain_line(tenant).recomputed_equal


def test_a_lease_active_twice_shows_both_usage_periods(kestrel: tuple[Tenant, Project]) -> None:
    tenant, project = kestrel
    states = [S.ACTIVE, S.STOPPED, S.ACTIVE, S.RELEASING, S.RELEASED]
    steps = [(START + timedelta(minutes=10 * n), state) for n, state in enumerate(states)]
    add_lease_history(project, create_priced_offering(EURO), steps)
    found = explain_line(tenant)
    assert [(w.state, w.seconds, w.charged) for w in found.leases[0].windows] == [
        (S.ACTIVE, 600, True),
        (S.STOPPED, 600, False),
        (S.ACTIVE, 600, True),
        (S.RELEASING, 600, False),
    ]
    assert found.recomputed_equal
