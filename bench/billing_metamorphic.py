"""Check that changes without effect on the amount owed change no invoice.

Usage: `python -m bench.billing_metamorphic [orders of arrival]`. Random histories of a tenant's leases
are repeated: split by ticks, in a zone with the same clock, under other names, in parts and any order
with rating in between, with their beginning sent twice. Every line and total stays the same.
"""

import os
import random
import sys
from collections import Counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_LOG_LEVEL", "ERROR")
django.setup()

from django.db import transaction  # noqa: E402

from bench.figures import Figures  # noqa: E402
from tests.billing.equivalent_histories import CHANGES, LeaseHistory, invoice_history  # noqa: E402
from tests.billing.tax.taxed_tenants import set_tax_rate  # noqa: E402

ORDERS, OF_A_TALE, SEED = 1_000, 10, 20261123
ARRIVAL = "in pieces, in any order"


def main(orders: int = ORDERS) -> None:
    figures, found, differ, lines = Figures("billing_metamorphic"), Counter[str](), Counter[str](), 0
    set_tax_rate("DE", 19)
    for number in range(orders // OF_A_TALE):
        rng = random.Random(SEED + number)
        with transaction.atomic():
            tale = LeaseHistory.by_chance(rng)
            wanted = invoice_history(tale, rng)
            lines += len(wanted)
            for change, otherwise in CHANGES.items():
                for _ in range(OF_A_TALE if change == ARRIVAL else 1):
                    found[change] += 1
                    differ[change] += invoice_history(otherwise(tale, rng), rng) != wanted
            transaction.set_rollback(True)
    figures.report_min("lines_and_totals", lines, unit="1", at_least=orders // OF_A_TALE)
    for change, many in found.items():
        name = change.replace(",", "").replace(" ", "_")
        figures.report_min(f"told_{name}", many, unit="1", at_least=orders // (1 if change == ARRIVAL else OF_A_TALE))
        figures.report_max(f"told_{name}_and_otherwise", differ[change], unit="1", at_most=0)
    figures.exit_with_status()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
