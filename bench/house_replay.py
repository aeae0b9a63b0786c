"""Benchmark of replaying a trace through the real services against empty transactions.

A replayed request is some ten transactions: requested, placed, created, ended, removed, queue served.
The baseline runs as many transactions of one trivial query each, through the same ORM on the same
connection.
"""

import os
import sys
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter, sleep

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from bench.figures import Figures  # noqa: E402
from broker.models import Cluster  # noqa: E402

WHOLE_TRACE_S = 180
FIRST = 60 if sys.argv[1:] == ["small"] else 0  # requests of the trace; 0 is all
SAMPLE = 20_000  # transactions of the baseline that are timed; its rate does not depend on how many


def committed() -> int:
    """Return how many transactions this database has committed."""
    sleep(1.2)  # PostgreSQL passes its counts on once a second
    with connection.cursor() as cursor:
        cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def replay() -> float:
    begun = perf_counter()
    call_command("replay", "openb", first=FIRST, out=Path(mkdtemp()), stdout=sys.stderr)
    return perf_counter() - begun


def nothing(times: int) -> float:
    begun = perf_counter()
    for _ in range(times):
        with transaction.atomic():
            Cluster.objects.exists()
    return perf_counter() - begun


def main() -> None:
    figures, before = Figures("house"), committed()
    took = replay()
    transactions = committed() - before
    figures.report_max("replay_openb", took, unit="s", at_most=WHOLE_TRACE_S)
    baseline = SAMPLE / nothing(SAMPLE)
    figures.report_rate("replay_transactions", transactions / took, baseline=baseline, at_least=0.4)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
