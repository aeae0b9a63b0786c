"""Ten thousand tenant-months, second by second: `python -m bench.billing_oracle`, on a migrated, empty database.

Leases live by chance where it hurts (tests/billing/stories.py). What PostgreSQL charges and puts on invoices must be,
bit for bit, what a walk through every single second in fractions comes to (tests/billing/seconds.py); and the bundle of
every invoice must pass the program that customers check it by. `python -m bench.billing_oracle 500 7`: fewer, and of
another seed.
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
from billing.services import bundles, drafts, rating  # noqa: E402
from billing.verify import verify  # noqa: E402
from tenants.services.walls import as_tenant  # noqa: E402
from tests.billing import stories  # noqa: E402
from tests.billing.billed import compared, differences  # noqa: E402
from tests.billing.stories import Market, Story, month_start  # noqa: E402

TENANT_MONTHS, SEED = 10_000, 20261122
MONTHS, LEASES_A_MONTH, TENANTS_AT_ONCE = 20, 3, 25
START, END = month_start(2026, 1), month_start(2026, 1 + MONTHS)
NOW = datetime(2028, 1, 1, tzinfo=UTC)
SHOWN = 5


def some(chance: random.Random, sells: Market, first: int) -> list[Story]:
    """Let some tenants live through all the months, one in each zone in turn."""
    written = []
    for n in range(first, first + TENANTS_AT_ONCE):
        story = stories.tenant(stories.ZONES[n % len(stories.ZONES)])
        if n % 2:
            stories.own_prices(chance, story, sells, cuts=8)
        stories.lives(chance, story, sells, START, END, leases=MONTHS * LEASES_A_MONTH)
        written.append(story)
    return written


def bundled(story: Story) -> tuple[int, int, list[str]]:
    """Check every invoice of a tenant from its bundle; return how many, their bytes and what differs."""
    sizes, wrong = list[int](), list[str]()
    with as_tenant(story.tenant.pk):
        for invoice in Invoice.objects.select_related("period"):
            raw = b"".join(bundles.bundle(invoice))
            report = verify.check(raw)
            wrong += report.differences + report.unchecked
            wrong += [] if report.total == invoice.total else [f"{invoice.pk}: another total"]
            sizes.append(len(raw))
    return len(sizes), sum(sizes), wrong


def main(tenant_months: int = TENANT_MONTHS, seed: int = SEED) -> None:
    figures, chance, found = Figures("billing_oracle"), random.Random(seed), Counter[str]()
    sells = stories.market(chance, START, END, offerings=9, changes=10)
    wrong, unfit = list[object](), list[str]()
    for first in count(0, TENANTS_AT_ONCE):
        if found["months"] >= tenant_months:
            break
        written = some(chance, sells, first)
        began = perf_counter()
        if rating.rate(now=NOW).gaps:
            raise RuntimeError("there are gaps in the prices")
        for story in written:
            drafts.refresh(story.tenant, now=NOW)
        found["ms charging"] += int(1000 * (perf_counter() - began))
        for story in written:
            sides = compared(story, sells.prices)
            wrong += differences(sides)
            found.update(months=sides.months, charges=sides.charges, seconds=sides.looked_at)
            began = perf_counter()
            invoices, size, differ = bundled(story)
            found["ms bundling"] += int(1000 * (perf_counter() - began))
            found.update(bundles=invoices, bytes=size)
            unfit += differ
    for one in (*wrong[:SHOWN], *unfit[:SHOWN]):
        print(one, file=sys.stderr)
    print(dict(found), file=sys.stderr)
    figures.least("tenant_months", found["months"], unit="1", at_least=tenant_months)
    figures.least("seconds_walked", found["seconds"], unit="s", at_least=1000 * tenant_months)
    figures.most("charges_lines_or_totals_that_differ", len(wrong), unit="1", at_most=0)
    figures.least("bundles_checked", found["bundles"], unit="1", at_least=tenant_months)
    figures.most("bundles_that_do_not_verify", len(unfit), unit="1", at_most=0)
    figures.leave()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:3]))
