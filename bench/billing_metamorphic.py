"""What changes nothing that is owed changes no invoice: `python -m bench.billing_metamorphic [orders of arrival]`.

Random tales of a tenant's leases are told again: cut by ticks, in a zone whose clocks are alike, under other names, in
pieces and any order with charging in between, with their beginning told twice. Every line and total stays the same.
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
from tests.billing.tax.papers import taxed  # noqa: E402
from tests.billing.twins import CHANGES, Tale, invoiced  # noqa: E402

ORDERS, OF_A_TALE, SEED = 1_000, 10, 20261123
ARRIVAL = "in pieces, in any order"


def main(orders: int = ORDERS) -> None:
    figures, told, differ, lines = Figures("billing_metamorphic"), Counter[str](), Counter[str](), 0
    taxed("DE", 19)
    for number in range(orders // OF_A_TALE):
        chance = random.Random(SEED + number)
        with transaction.atomic():
            tale = Tale.by_chance(chance)
            wanted = invoiced(tale, chance)
            lines += len(wanted)
            for change, otherwise in CHANGES.items():
                for _ in range(OF_A_TALE if change == ARRIVAL else 1):
                    told[change] += 1
                    differ[change] += invoiced(otherwise(tale, chance), chance) != wanted
            transaction.set_rollback(True)
    figures.least("lines_and_totals", lines, unit="1", at_least=orders // OF_A_TALE)
    for change, many in told.items():
        name = change.replace(",", "").replace(" ", "_")
        figures.least(
            f"told_{name}", many, unit="1", at_least=orders if change == ARRIVAL else orders // OF_A_TALE
        )
        figures.most(f"told_{name}_and_otherwise", differ[change], unit="1", at_most=0)
    figures.leave()


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]))
