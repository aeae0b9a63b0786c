"""Charges, invoice lines, exports and reports of leases without a GPU."""

import csv
import io
import json
from datetime import timedelta

import pytest

from billing.models import Invoice, InvoiceLine, RatedCharge
from billing.services.documents import csv_exports
from billing.services.documents.line_names import name_lines
from billing.services.invoicing.month_close import close_month
from billing.services.quotes import alternatives
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.models import Lease, Offering
from tenants.models import Tenant
from tenants.services.rls import tenant_scope
from tests.billing.histories import EURO, HOUR, LONG_AGO, add_ended_lease, create_customer, set_price, utc
from tests.simulation import NOW, Simulation, create_cpu_nodes, create_gpus, create_tenant, offering

FOUR_VCPUS, EIGHT_VCPUS = EURO // 5, EURO * 2 // 5  # 0.05 a vCPU and hour
OCTOBER = utc("2026-10-01 00:00:00")


def cpu_offering(profile: str = "4vcpu") -> Offering:
    return offering(profile, model=CPU_MODEL_NAME)


def price_cpus() -> None:
    create_cpu_nodes()
    for profile, nano in (("2vcpu", EURO // 10), ("4vcpu", FOUR_VCPUS), ("8vcpu", EIGHT_VCPUS)):
        set_price(cpu_offering(profile), nano, since=LONG_AGO)


@pytest.fixture
def tenant(sim: Simulation) -> Tenant:
    """Use two leases of 4 vCPUs for an hour each in October."""
    price_cpus()
    tenant, project = create_customer()
    add_ended_lease(project, cpu_offering(), OCTOBER, HOUR)
    add_ended_lease(project, cpu_offering(), OCTOBER, HOUR)
    lease_rating.rate_tenant_leases(tenant, now=NOW)
    return tenant


def invoice_of(tenant: Tenant) -> Invoice:
    found = close_month.close_period(tenant, "2026-10", now=NOW)
    assert found is not None
    return found


def lease_of(sim: Simulation, what: Offering) -> Lease:
    """Return a queued lease whose tenant may see prices."""
    return sim.request_lease(create_tenant(), what)


def test_an_hour_of_a_cpu_lease_is_charged_exactly_its_price(tenant: Tenant) -> None:
    with tenant_scope(tenant.pk):
        charges = list(RatedCharge.objects.values_list("unit_seconds", "exact_num"))
    assert charges == [(HOUR, HOUR * FOUR_VCPUS)] * 2


def test_the_invoice_line_of_cpus_names_their_size(tenant: Tenant) -> None:
    invoice = invoice_of(tenant)
    with tenant_scope(tenant.pk):
        [line] = name_lines(Invoice.objects.select_related("period").get(pk=invoice.pk))
        amount = InvoiceLine.objects.get(invoice=invoice).minor
    assert (line.title, line.terms, amount) == ("CPU 4 vCPU", "2 leases · on-demand", 40)


def test_the_focus_export_names_cpus_as_their_own_service(tenant: Tenant) -> None:
    invoice = invoice_of(tenant)
    with tenant_scope(tenant.pk):
        found = Invoice.objects.select_related("period", "tenant").get(pk=invoice.pk)
        row, _ = csv.DictReader(io.StringIO("".join(csv_exports.csv_text(found, "focus"))))
    assert (row["ServiceCategory"], row["ServiceName"], row["SkuId"]) == ("Compute", "CPU", cpu_offering().pk)
    assert json.loads(row["SkuPriceDetails"]) == {"CoreCount": 4, "InstanceType": "4vcpu"}
    assert row["ChargeDescription"].startswith("CPU 4 vCPU, on-demand: ")


def test_cpus_are_checked_for_conservation_but_have_no_gpu_hours(sim: Simulation) -> None:
    price_cpus()
    lease = sim.create_lease(create_tenant(), cpu_offering())
    begun = sim.now
    sim.run(HOUR - 60)
    found = conservation.check_conservation(first=begun, last=sim.now)
    assert lease.offering.model in found.models
    assert found.unexplained == 0
    report = found.as_report()
    assert (report["gpu_hours"], report["total_gpu_seconds"], report["unexplained_gpu_seconds"]) == ("0.000", 0, 0)


def test_only_other_sizes_of_cpus_are_alternatives_to_cpus(sim: Simulation) -> None:
    price_cpus()
    create_gpus(1)
    set_price(offering("1g.10gb"), EURO, since=LONG_AGO)
    lease = lease_of(sim, cpu_offering())
    with tenant_scope(lease.tenant_id):
        found = alternatives.find_alternatives(lease, currency="EUR", cost=20, now=sim.now)
    assert {each.kind: each.offering.label for each in found} == {"cheaper": "CPU 2 vCPU", "faster": "CPU 8 vCPU"}


def test_cpus_are_no_alternative_to_a_gpu(sim: Simulation) -> None:
    price_cpus()
    create_gpus(1)
    set_price(offering("1g.10gb"), EURO, since=LONG_AGO)
    lease = lease_of(sim, offering("1g.10gb"))
    with tenant_scope(lease.tenant_id):
        assert alternatives.find_alternatives(lease, currency="EUR", cost=100, now=sim.now) == ()


def test_a_running_cpu_lease_costs_its_price_for_the_time_so_far(sim: Simulation) -> None:
    price_cpus()
    kestrel = create_tenant()
    lease = sim.create_lease(kestrel, cpu_offering())
    sim.run(1800)
    sim.release_lease(lease)
    sim.run(30)
    lease_rating.rate_all_leases(now=sim.now + timedelta(minutes=5))
    with tenant_scope(lease.tenant_id):
        [charge] = RatedCharge.objects.filter(lease_id=lease.pk)
    assert charge.exact_num == charge.unit_seconds * FOUR_VCPUS
    assert abs(charge.unit_seconds - 1800) <= 1
