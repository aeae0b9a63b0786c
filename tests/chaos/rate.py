"""Rate all ended usage now: `python -m tests.chaos.rate`."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from billing.services.rating import lease_rating  # noqa: E402
from ports import clock  # noqa: E402

if __name__ == "__main__":
    gaps = lease_rating.rate_all_leases(now=clock.now()).gaps
    if gaps:
        raise SystemExit("\n".join(map(str, gaps)))
