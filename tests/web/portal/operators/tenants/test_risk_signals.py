"""Risk signals of a tenant, and the chart of its spend rate."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from billing.domain.money import Money
from billing.gateways.simulated import GatewayFault
from billing.services.invoicing.disputes import dispute_requests
from billing.services.reports import spend_rates
from billing.services.reports.spend_rates import SpendRate, SpendRates
from tenants.models import Tenant
from tenants.services.rls import staff_scope, tenant_scope
from tests.billing.payments.payable_invoices import (
    MIRA,
    NOW,
    create_final_invoice,
    fail_next_charges,
    process_payment,
    request_payment,
)
from tests.simulation import Simulation, TenantContext, offering
from tests.web.portal.signed_in_user import visible_text
from web.portal.operators.tenants import risk_signals
from web.portal.projects.quota_fields import QuotaField

pytestmark = pytest.mark.django_db
EURO = 10**9


def rates(*per_hour: int) -> SpendRates:
    """Return a week of steps that ends now, filled from the oldest."""
    first = NOW - timedelta(days=7)
    return SpendRates(
        NOW, tuple(SpendRate(first + n * timedelta(hours=4), each * EURO) for n, each in enumerate(per_hour))
    )


def test_an_overdue_invoice_states_amount_and_days(kestrel: TenantContext) -> None:
    since = NOW - timedelta(days=4, hours=3)
    late = risk_signals.overdue_signal(kestrel.tenant, [Money(131_840, "EUR")], since, now=NOW)
    assert (late.text, late.raised) == ("€1,318.40, 4 days overdue", True)
    assert f"tenant={kestrel.tenant.pk}" in late.url
    assert not risk_signals.overdue_signal(kestrel.tenant, [], None, now=NOW).raised


def test_declined_payments_and_disputes_are_counted(simulated_payments: None) -> None:
    invoice = create_final_invoice()
    with staff_scope():
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
        assert not risk_signals.declined_signal(tenant, now=NOW).raised
        assert not risk_signals.dispute_signal(tenant).raised
    fail_next_charges(invoice, GatewayFault.DECLINED)
    process_payment(request_payment(invoice))
    dispute_requests.dispute_lines(invoice, lines={1: None}, reason="the GPU was down", actor=MIRA, now=NOW)
    with staff_scope():
        declined, disputes = risk_signals.declined_signal(tenant, now=NOW), risk_signals.dispute_signal(tenant)
        later = risk_signals.declined_signal(tenant, now=NOW + timedelta(days=40))
    assert (declined.text, declined.raised) == ("1 in the last 30 days", True)
    assert (disputes.text, disputes.raised) == ("1 of invoice lines", True)
    assert not later.raised


def test_a_spend_rate_of_three_times_the_usual_is_raised() -> None:
    week = rates(*[2] * 36, *[9] * 6)
    sudden = risk_signals.spend_rate_signal(6 * EURO, week, "EUR")
    assert (sudden.text, sudden.raised) == ("3.0 × the usual €2.00/h", True)
    assert not risk_signals.spend_rate_signal(5 * EURO, week, "EUR").raised
    fresh = risk_signals.spend_rate_signal(5 * EURO, rates(*[0] * 40, 5, 5), "EUR")
    assert (fresh.text, fresh.raised) == ("€5.00/h; nothing to compare with yet", False)


def test_the_fullest_quota_counts() -> None:
    units = QuotaField("units", "Concurrent units", "units", "4", 1000, 4000)
    burn = QuotaField("burn", "Spend rate limit", "per hour", "10", 9 * EURO, 10 * EURO)
    free = QuotaField("storage", "Volumes", "GiB", "", 0, 0)
    full = risk_signals.quota_signal([units, burn, free])
    assert (full.text, full.raised) == ("Spend rate limit: 90 % used", True)
    assert not risk_signals.quota_signal([units, free]).raised
    assert risk_signals.quota_signal([free]).raised, "nothing limits it"


def test_a_tenant_is_new_until_it_is_released(kestrel: TenantContext) -> None:
    tenant = kestrel.tenant
    tenant.released_at = None
    assert "not released yet" in risk_signals.age_signal(tenant, now=NOW).text
    tenant.released_at = tenant.created_at
    with tenant_scope(tenant.pk):
        assert risk_signals.age_signal(tenant, now=tenant.created_at + timedelta(days=3)).raised
        assert not risk_signals.age_signal(tenant, now=tenant.created_at + timedelta(days=31)).raised


def test_the_series_states_what_was_spent_per_hour(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("3g.40gb"), max_duration_s=8 * 3600)
    sim.run(2 * 3600)
    sim.release_lease(lease)
    sim.run(60)
    with tenant_scope(kestrel.tenant.pk):
        found = spend_rates.read_spend_rates(now=sim.now)
    assert len(found.steps) == 42
    assert found.steps[-1].since == sim.now.replace(microsecond=0) - timedelta(hours=4)
    assert [each.nano_per_hour for each in found.steps[:-1]] == [0] * 41
    assert abs(found.steps[-1].nano_per_hour - 6 * EURO // 10) < EURO // 100, "€1.20 an hour, two hours of four"


def test_the_page_shows_chart_signals_and_leads_to_a_payment(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    sim.create_lease(kestrel, offering("3g.40gb"), name="fold", max_duration_s=8 * 3600)
    sim.run(3600)
    answer: Any = operator.get(f"/ops/tenants/{kestrel.tenant.pk}/")
    shown = visible_text(answer)
    assert "Spend rate, last 7 days" in shown
    assert "Risk signals" in shown
    assert "Unpaid invoices none is overdue" in shown
    page = answer.content.decode()
    rate = re.search(r"Spend rate (€[\d.]+)/h", shown)
    assert rate
    assert f"in the last 7 days; {rate[1]}/h now" in page
    link = f"/ops/bank-receipts/?tenant={kestrel.tenant.pk}"
    assert link in page
    form = operator.get(link).content.decode()
    assert f'<option value="{kestrel.tenant.pk}" selected>' in " ".join(form.split())
