"""Tabs of the pages about one lease."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.models import Lease
from web.http.query_strings import LinkOption

TABS = {  # by the names of their URLs
    "lease": gettext_noop("Overview"),
    "lease-metrics": gettext_noop("Metrics"),
    "lease-log": gettext_noop("Logs"),
}


def lease_tabs(lease: Lease, current: str) -> list[LinkOption]:
    """Return the tabs of a lease's pages; `current` is a URL name.

    Metrics are of GPUs, which a lease of CPUs alone has not.
    """
    return [
        {"url": reverse(name, args=[lease.pk]), "label": _(label), "current": name == current}
        for name, label in TABS.items()
        if name != "lease-metrics" or lease.offering.has_gpu
    ]
