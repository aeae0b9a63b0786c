"""Compare ten thousand tenant-months with a computation second by second.

Usage: `python -m bench.billing_oracle`, on a migrated, empty database. Leases live randomly through
difficult cases (tests/billing/random_tenants.py). What PostgreSQL charges and invoices must equal, bit for bit,
a walk through every single second in fractions (tests/billing/per_second_oracle.py); and the bundle of every
invoice must pass the verifier that customers download. `python -m bench.billing_oracle 500 7`: fewer,
and with another seed.
"""

import os
import random
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import count
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from billing.models import Invoice  # noqa: E402
from billing.services.documents import invoice_bundles  # noqa: E402
from billing.services.invoicing import drafts  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from billing.verify import verify  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402
from tests.billing import random_tenants  # noqa: E402
from tests.billing.charged_rows import compare_with_oracle, differences  # noqa: E402
from tests.billing.random_tenants import Market, RandomTenant, month_start  # noqa: E402

TENANT_MONTHS, SEED = 10_000, 20261122
MONTHS, LEASES_A_MONTH, TENANTS_AT_ONCE = 20, 3, 25
START, END = month_start(2026, 1), month_start(2026, 1 + MONTHS)
NOW = datetime(2028, 1, 1, tzinfo=UTC)
SHOWN = 5


def some(rng: random.Random, sells: Market, first: int) -> list[RandomTenant]:
    """Run some tenants through all the months, alternating over the time zones."""
    written = []
    for n in range(first, first + TENANTS_AT_ONCE):
        story = random_tenants.create_random_tenant(random_tenants.ZONES[n % len(random_tenants.ZONES)])
        if n % 2:
            random_tenants.add_tenant_prices(rng, story, sells, cuts=8)
        random_tenants.add_random_leases(rng, story, sells, START, END, leases=MONTHS * LEASES_A_MONTH)
        written.append(story)
    return written


def bundled(story: RandomTenant) -> tuple[int, int, list[str]]:
    """Verify every invoice bundle of a tenant; return count, bytes and differences."""
    sizes, wrong = list[int](), list[str]()
    with tenant_scope(story.tenant.pk):
        for invoice in Invoice.objects.select_related("period"):
            raw = b"".join(invoice_bundles.build_bundle(invoice))
            report = verify.check(raw)
            wrong += report.differences + report.unchecked
            wrong += [] if report.total == invoice.total else [f"{invoice.pk}: another total"]
            sizes.append(len(raw))
    return len(sizes), sum(sizes), wrong


def main(tenant_months: int = TENANT_MONTHS, seed: int = SEED) -> None:
    figures, rng, found = Figures("billing_oracle"), random.Random(seed), Counter[str]()
    sells = random_tenants.create_market(rng, START, END, offerings=9, changes=10)
    wrong, unfit = list[object](), list[str]()
    for first in count(0, TENANTS_AT_ONCE):
        if found["months"] >= tenant_months:
            break
        written = some(rng, sells, first)
        began = perf_counter()
        if lease_rating.rate_all_leases(now=NOW).gaps:
            raise RuntimeError("there are gaps in the prices")
        for story in written:
            drafts.refresh_drafts(story.tenant, now=NOW)
        found["ms charging"] += int(1000 * (perf_counter() - began))
        for story in written:
            sides = compare_with_oracle(story, sells.prices)
            wrong += differences(sides)
            found.update(months=sides.months, charges=sides.charges, seconds=sides.checked_at)
            began = perf_counter()
            invoices, size, differ = bundled(story)
            found["ms bundling"] += int(1000 * (perf_counter() - began))
            found.update(bundles=invoices, bytes=size)
            unfit += differ
    for one in (*wrong[:SHOWN], *unfit[:SHOWN]):
        print(one, file=sys.stderr)
    print(dict(found), file=sys.stderr)
    figures.report_min("tenant_months", found["months"], unit="1", at_least=tenant_months)
    figures.report_min("seconds_walked", found["seconds"], unit="s", at_least=1000 * tenant_months)
    figures.report_max("charges_lines_or_totals_that_differ", len(wrong), unit="1", at_most=0)
    figures.report_min("bundles_checked", found["bundles"], unit="1", at_least=tenant_months)
    figures.report_max("bundles_that_do_not_verify", len(unfit), unit="1", at_most=0)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:3]))
