"""Benchmark of document layout, and of how its time grows with the number of lines.

Usage: `python -m bench.billing_documents`. Each document is different, because typst caches what it has
laid out.
"""

import os
import sys
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from billing.services.documents.pdf_rendering import render_pdf  # noqa: E402
from tests.billing.documents.sample_documents import sample_invoice  # noqa: E402

REPEATS, FEW, MANY = (2, 20, 100) if sys.argv[1:] == ["small"] else (7, 200, 1000)
AT = datetime(2026, 11, 1, tzinfo=UTC)


def took(lines: int, turn: int) -> float:
    """Time one document of so many lines."""
    wanted = sample_invoice(f"Kestrel {lines} {turn}", lines=lines)
    begun = perf_counter()
    render_pdf(wanted, at=AT)
    return perf_counter() - begun


def main() -> None:
    figures = Figures("billing")
    took(1, 0)  # fonts are read once per process
    times = {lines: median(took(lines, turn) for turn in range(REPEATS)) for lines in (FEW, MANY)}
    figures.report_time(f"PDF of {MANY} lines to one of {FEW}", times[MANY], baseline=times[FEW], at_most=6.5)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
