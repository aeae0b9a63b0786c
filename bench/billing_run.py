"""Benchmark of the invoice run, month by month: `python -m bench.billing_run [tenants]`.

It is compared with the bare aggregate over as many rows; with a loop that fetches each tenant's charges,
adds them up in Python and saves invoice and lines one by one, which is what most would write first and
which has no tax, no holds, no wallet and no ledger; and with itself with ten times the tenants.

Every month is closed once and for good: each batch commits, which includes the deferred foreign key
checks. Nothing is done between the batches, and no draft line exists before, though the product keeps
drafts all the month. The runs over a tenth have tenants of their own, one before all the others are
closed and two after. Only the loop is rolled back, in one transaction for all, which flatters it.
"""

import os
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import connection, transaction  # noqa: E402

from bench import billing  # noqa: E402
from bench.figures import Figures  # noqa: E402
from billing.domain.money import to_minor  # noqa: E402
from billing.models import BillingPeriod, Invoice, InvoiceLine, RatedCharge  # noqa: E402
from billing.services.invoicing.month_close import batch_close, close_month  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.services.rls import system_scope, tenant_scope  # noqa: E402
from tests.billing.tax.taxed_tenants import set_tax_rate  # noqa: E402

TENANTS, LEASES, BY_ORM = 10_000, 10, 100  # a million stretches, as ten of each lease
TENTHS = 3
OVER = datetime(2026, 4, 2, tzinfo=UTC)
SO_MUCH = Path(__file__).with_name("aggregate.sql").read_text()


def build(tenants: int) -> list[str]:
    """Write every tenant's history and rate it, since a run begins after rating."""
    billing.TENANTS, billing.LEASES = tenants, LEASES
    billing.create_usage()
    billing.create_months(OVER)
    set_tax_rate("DE", 19)
    lease_rating.rate_all_leases(now=OVER, whole=True)
    billing.vacuum()
    with system_scope():
        return list(Tenant.objects.order_by("pk").values_list("pk", flat=True))


def aggregate() -> float:
    with system_scope(), connection.cursor() as cursor:
        begun = perf_counter()
        cursor.execute(SO_MUCH)
        cursor.fetchone()
        return perf_counter() - begun


def closed(tenants: list[str]) -> float:
    """Time the close of a month of these tenants, one transaction per batch."""
    begun = perf_counter()
    done = batch_close.close_simple_months(
        [(each, "2026-03") for each in tenants], charge_until=close_month._charge_until, now=OVER
    )
    spent = perf_counter() - begun
    if done != len(tenants):
        raise RuntimeError(f"{len(tenants) - done} of {len(tenants)} months were not closed")
    return spent


def by_hand(tenants: list[str]) -> float:
    """Time the naive loop; rolled back."""
    with transaction.atomic():
        begun = perf_counter()
        for tenant_id in tenants:
            with tenant_scope(tenant_id):
                _by_hand(Tenant.objects.get(pk=tenant_id))
        spent = perf_counter() - begun
        transaction.set_rollback(True)
    return spent


def _by_hand(tenant: Tenant) -> None:
    month = BillingPeriod.objects.get(tenant=tenant, label="2026-03")
    sums: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0])
    for charge in RatedCharge.objects.filter(billed_period_id=month.pk):
        found = sums[charge.project_id, charge.offering_id, charge.price_version_id]
        found[0] += charge.unit_seconds
        found[1] += int(charge.exact_num)
    invoice = Invoice.objects.create(tenant=tenant, period=month, currency=tenant.currency, refreshed_at=OVER)
    for n, ((project, offering, version), (seconds, exact)) in enumerate(sorted(sums.items()), 1):
        line = InvoiceLine.objects.create(
            tenant=tenant,
            invoice=invoice,
            n=n,
            project_id=project,
            offering_id=offering,
            price_version_id=version,
            leases=1,
            unit_seconds=seconds,
            exact_num=exact,
            minor=to_minor(exact, 2),
        )
        invoice.total += line.minor
        invoice.save(update_fields=["total"])


def main(tenants: int = TENANTS) -> None:
    tenth = tenants // 10
    figures, everyone = Figures("billing_run"), build(tenants + TENTHS * tenth)
    tenths = [everyone[n * tenth :][:tenth] for n in range(TENTHS)]
    base = median(aggregate() for _ in range(5)) * tenants / len(everyone)
    loop = median(by_hand(everyone[:BY_ORM]) for _ in range(3))
    few = [closed(tenths[0])]
    each = closed(everyone[TENTHS * tenth :]) / tenants
    few += [closed(more) for more in tenths[1:]]
    print(f"{1000 * each:.2f} ms a month; 10,000 take {10_000 * each:.1f} s", file=sys.stderr)
    figures.report_time("invoice_run", tenants * each, baseline=base, at_most=0.6)
    figures.report_rate("invoices_against_a_loop", 1 / each, baseline=BY_ORM / loop, at_least=10)
    figures.report_time("ten_times_the_tenants", tenants * each, baseline=median(few), at_most=10.5)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
