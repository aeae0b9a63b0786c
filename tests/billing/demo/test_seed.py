"""Seeded demo data, its checks and its launch request."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from billing.gateways.simulated import SimulatedGateway
from billing.models import Invoice
from billing.services.catalogue import price_list
from billing.services.demo.seed import seed_fleet, seed_prices, seed_tenants
from billing.services.ledger import ledger_balances
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.models import Lease, Offering
from broker.services.reports import invariant_checks as capacity_proofs
from ports import clock, payments
from tenants.domain import credentials
from tenants.models import Project, Quota
from tenants.services import authentication
from tenants.services.actors import Actor
from tenants.services.rls import staff_scope, system_scope
from tests.simulation import TenantContext, reload_lease, simulate

NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def run_seed() -> dict[str, Any]:
    said = StringIO()
    with clock.frozen_at(NOW), payments.using_gateway(SimulatedGateway()):
        call_command("seed", stdout=said)
    answer: dict[str, Any] = json.loads(said.getvalue())
    return answer


def test_the_demo_fleet_sells_cpus_at_five_cents_a_vcpu_hour() -> None:
    seed_fleet.create_fleet(now=NOW)
    seed_prices.publish_list_prices(since=NOW, actor=seed_tenants.SEED_ACTOR, now=NOW)
    cpus = Offering.objects.published().filter(gpu_model=CPU_MODEL_NAME, price_class="on_demand")
    prices = price_list.prices_at(NOW, currency="EUR", offerings=[each.pk for each in cpus])
    assert {each.label: prices[each.pk].nano_per_hour // 10**7 for each in cpus} == {
        "CPU 2 vCPU": 10,
        "CPU 4 vCPU": 20,
        "CPU 8 vCPU": 40,
        "CPU 16 vCPU": 80,
    }


@pytest.mark.deep
def test_the_seeded_demo_has_history_and_passes_every_integrity_check() -> None:
    answer = run_seed()
    with system_scope():
        states = list(Lease.objects.values_list("state", flat=True))
        assert states.count("active") > 50
        assert states.count("released") > 80
        assert [lease.name for lease in Lease.objects.filter(state="queued")] == ["sweep-32"]
        assert {invoice.status for invoice in Invoice.objects.all()} == {"draft", "paid"}
        assert all(quota.used <= quota.limit for quota in Quota.objects.all())
    with staff_scope():
        assert all(proof.holds for proof in capacity_proofs.check_invariants(now=NOW))
        (euros,), drifts = ledger_balances.recomputed_trial_balance()
        assert (
            euros.balanced,
            drifts,
            ledger_balances.uncleared_invoices(),
            ledger_balances.missing_events(),
        ) == (True, (), [], [])
        paid = sum(invoice.total for invoice in Invoice.objects.filter(status="paid"))
        assert {line.type: line.debit for line in euros.lines if line.debit} == {"cash": paid}
        assert paid > 0
    for account in answer["accounts"]:
        assert authenticate(None, username=account["email"], password=account["password"])
    with clock.frozen_at(NOW):
        visitor = authentication.authenticate_token(credentials.parse_token(answer["token"]), request_id="", now=NOW)  # type: ignore[arg-type]
    assert visitor is not None
    assert visitor.tenant.name == "Kestrel Bio"
    assert visitor.grants.anywhere("leases.write")
    offering = Offering.objects.get(label="H200 SXM 141GB 1g.18gb", price_class="on_demand")
    assert answer["launch"]["offering"] == offering.pk
    assert run_seed() == {"seeded": False}, "a second seed changes nothing"
    with system_scope():
        assert Lease.objects.count() == len(states)


@pytest.mark.deep
@pytest.mark.parametrize("later", [timedelta(), timedelta(minutes=30), timedelta(hours=2)])
def test_the_printed_launch_request_starts_at_once_at_any_later_time(later: timedelta) -> None:
    wanted = run_seed()["launch"]
    with staff_scope():
        project = Project.objects.select_related("tenant").get(pk=wanted["project"])
    mira = TenantContext(project.tenant, project, Actor("user", "usr_mira", "mira@kestrel.example"))
    with simulate(NOW + later) as sim:
        sim.run_with_sweeps(60)
        lease = sim.request_lease(mira, Offering.objects.get(pk=wanted["offering"]))
        sim.run(30)
        assert reload_lease(lease).state == "active"
