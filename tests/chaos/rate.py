"""Charge whatever has ended, now and not when the beat says: `python -m tests.chaos.rate`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from billing.services import rating  # noqa: E402
from ports import clock  # noqa: E402

if __name__ == "__main__":
    gaps = rating.rate(now=clock.now()).gaps
    if gaps:
        raise SystemExit("\n".join(map(str, gaps)))
