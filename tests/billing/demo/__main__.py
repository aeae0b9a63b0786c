"""Billing demo of `make demo-billing`: a month of five tenants with every check.

Prices change, spot leases are reclaimed, a budget and a wallet stop leases, a card is declined, usage arrives late.
Invoices, page images and bundles are written to build/demo-billing, or to the given folder.
"""

import os
import shutil
import sys
from pathlib import Path
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["GPUBROKER_LOG_LEVEL"] = "ERROR"
django.setup()

from django.conf import settings  # noqa: E402

from billing.models import Invoice  # noqa: E402
from tenants.services.rls import staff_scope  # noqa: E402
from tests.billing.demo import checks, demo_documents  # noqa: E402
from tests.billing.demo.demo_month import OPENS, DemoMonth  # noqa: E402
from tests.simulation import simulate  # noqa: E402

FOLDER = "build/demo-billing"


def final(series: str = "") -> list[Invoice]:
    with staff_scope():
        found = Invoice.objects.exclude(number=None).select_related("period", "tenant")
        return list(found.filter(series__startswith=series).order_by("series", "number"))


def bundled() -> dict[str, bytes]:
    return {str(invoice): demo_documents.bundled(invoice) for invoice in final("2026-10")}


def main(folder: str = FOLDER) -> int:
    begun, out = perf_counter(), Path(folder)
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(out / "emails")
    shutil.rmtree(out / "emails", ignore_errors=True)
    with simulate(OPENS) as sim:
        story = DemoMonth(sim)
        story.until_october_is_closed()
        october = bundled()
        story.until_the_end()
        handed = demo_documents.hand_out(out, final(), story.note, now=sim.now)
        found = list(checks.run_checks(story, handed, october, bundled()))
    print(f"\n  {'check':62} {'result':44}")
    for check in found:
        print(f"  {check.description:62} {check.found:44} {'ok' if check.passed else 'WRONG'}")
    for line in handed.wrong:
        print(line)
    print(f"\n  documents, page images, bundles and e-mails: {folder}; {perf_counter() - begun:.0f} s")
    return 0 if all(check.passed for check in found) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
