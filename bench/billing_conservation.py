"""Check that rated and invoiced seconds equal metered ones over random leases.

Usage: `python -m bench.billing_conservation`. Exact amounts are compared too. Leases live randomly
through clock changes, month ends and changes of prices, offerings and quantities, in nine time zones;
one in twenty is reported after its month is closed. `make bench ONLY=billing_conservation SIZE=1000000`
runs a million.
"""

import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import connection, connections  # noqa: E402

from bench.figures import Figures  # noqa: E402
from billing.domain.money import EXACT_PER_UNIT, EXPONENTS  # noqa: E402
from billing.services.invoicing.month_close import close_month  # noqa: E402
from billing.services.rating import lease_rating  # noqa: E402
from ports.postgres.sql_statements import load_sql  # noqa: E402
from tenants.services.rls import staff_scope, tenant_scope  # noqa: E402
from tests.billing import random_tenants  # noqa: E402
from tests.billing.random_tenants import Market, RandomTenant  # noqa: E402
from tests.billing.tax.taxed_tenants import set_tax_rate  # noqa: E402

LEASES, A_TENANT, LATE, SEED = 100_000, 2_000, 20, 20261123
SQL = (Path(__file__).parent / "conserved.sql").read_text()
SINCE, UNTIL = (
    datetime(2026, 2, 20, tzinfo=UTC),
    datetime(2026, 4, 8, tzinfo=UTC),
)  # three clock changes, two month ends
FEBRUARY_OVER, MARCH_OVER, ALL_OVER = (
    datetime(2026, 3, 2, tzinfo=UTC),
    datetime(2026, 4, 2, tzinfo=UTC),
    datetime(2026, 6, 2, tzinfo=UTC),
)
SCALES = {
    "currencies": list(EXPONENTS),
    "scales": [10**exponent for exponent in EXPONENTS.values()],
    "per_unit": EXACT_PER_UNIT,
}
UNEQUAL = """
WITH metered AS (
  SELECT b.lease_id, sum(extract(epoch FROM e.at - b.at)::bigint * b.quantity) AS seconds
    FROM broker_transition b JOIN broker_transition e ON e.lease_id = b.lease_id AND e.prev_seq = b.seq
   WHERE b.after = 'active' GROUP BY 1
), rated AS (
  SELECT lease_id, sum(unit_seconds) FILTER (WHERE kind = 'usage') AS seconds FROM billing_ratedcharge GROUP BY 1
)
SELECT count(*) FILTER (WHERE coalesce(m.seconds, 0) <> coalesce(r.seconds, 0)), count(*),
       sum(m.seconds)::bigint, sum(r.seconds)::bigint
  FROM metered m FULL JOIN rated r USING (lease_id)
"""
INVOICED = """
SELECT (SELECT sum(unit_seconds + given_back_s) FROM billing_invoiceline)::bigint,
       count(*) FILTER (WHERE abs(total - tax - exact) > lines * 0.5), count(*)
  FROM (SELECT i.id, i.total, i.tax, count(l.id) AS lines, sum(l.exact_num) * 100 / 3600000000000.0 AS exact
          FROM billing_invoice i JOIN billing_invoiceline l ON l.invoice_id = i.id GROUP BY i.id) each
"""


def patient() -> None:
    """Remove the statement timeout."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout TO 0")


def people(rng: random.Random, sells: Market, leases: int) -> list[RandomTenant]:
    made = []
    for n in range(max(leases // A_TENANT, len(random_tenants.ZONES))):
        story = random_tenants.create_random_tenant(random_tenants.ZONES[n % len(random_tenants.ZONES)])
        if n % 3 == 0:
            random_tenants.add_tenant_prices(rng, story, sells, cuts=6)
        made.append(story)
    return made


def live(
    everyone: list[RandomTenant], sells: Market, *, wave: str, leases: int, since: datetime, until: datetime
) -> None:
    """Write so many leases between two moments, distributed over all tenants."""
    each, more = divmod(leases, len(everyone))
    for n, story in enumerate(everyone):
        values = {
            "tenant": story.tenant.pk,
            "projects": [project.pk for project in story.projects],
            "offerings": [offering.pk for offering in sells.offerings],
            "kinds": len(sells.offerings),
            "leases": each + (n < more),
            "wave": wave,
            "since": since,
            "seconds": (until - since) // timedelta(seconds=1),
            "seed": SEED,
        }
        with tenant_scope(story.tenant.pk), connection.cursor() as cursor:
            cursor.execute(SQL, values)


def tidy() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def charge_and_close(now: datetime) -> None:
    outcome = lease_rating.rate_all_leases(now=now)
    closed = close_month.close_due_months(now=now)
    if outcome.gaps or outcome.broken or closed.gaps or closed.waiting:
        raise RuntimeError(f"{outcome.gaps or outcome.broken or closed}"[:500])


def main(leases: int = LEASES) -> None:
    figures, rng, begun = Figures("billing_conservation"), random.Random(SEED), perf_counter()
    sells = random_tenants.create_market(rng, SINCE, UNTIL, offerings=12, changes=5)
    set_tax_rate("DE", 19)
    everyone, late = people(rng, sells, leases), leases // LATE
    patient()
    live(everyone, sells, wave="a", leases=leases - late, since=SINCE, until=UNTIL)
    tidy()
    began = perf_counter()
    charge_and_close(FEBRUARY_OVER)
    live(everyone, sells, wave="b", leases=late, since=SINCE, until=FEBRUARY_OVER - timedelta(days=3))
    tidy()
    for now in (MARCH_OVER, ALL_OVER):
        charge_and_close(now)
    print(f"told in {began - begun:.0f} s, charged and closed in {perf_counter() - began:.0f} s", file=sys.stderr)
    with staff_scope(), connection.cursor() as cursor:
        cursor.execute(UNEQUAL)
        unequal, counted, metered, rated = cursor.fetchone()
        cursor.execute(INVOICED)
        invoiced, far_off, invoices = cursor.fetchone()
        cursor.execute("SELECT count(*) FROM billing_ratedcharge WHERE period_id <> billed_period_id")
        (billed_later,) = cursor.fetchone()
        cursor.execute(load_sql("billing/reports/lines_and_charges"), SCALES)
        off, misrounded, wrong = cursor.fetchone()
    print(f"{metered:,} unit-seconds, {invoices:,} invoices, {billed_later:,} late charges", file=sys.stderr)
    figures.report_min("leases_that_ran", counted, unit="1", at_least=int(leases * 0.99))
    figures.report_min("charges_of_closed_months", billed_later, unit="1", at_least=late)
    figures.report_max("leases_metered_unlike_rated", unequal, unit="1", at_most=0)
    figures.report_max("seconds_metered_and_not_rated", abs(metered - rated), unit="s", at_most=0)
    figures.report_max("seconds_rated_and_not_invoiced", abs(rated - invoiced), unit="s", at_most=0)
    figures.report_max("exact_amounts_off_the_charges", int(off), unit="1", at_most=0)
    figures.report_max("lines_misrounded", misrounded, unit="1", at_most=0)
    figures.report_max("totals_off_their_lines", wrong, unit="1", at_most=0)
    figures.report_max("invoices_further_off_than_half_a_cent_a_line", far_off, unit="1", at_most=0)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
