"""A process that places leases and lets them go: `python -m tests.broker.placer <seed> <rounds>`, their ids on stdin.

Prints how many it placed, and how often somebody else was faster or there was no room.
"""

import sys
from random import Random

import django

django.setup()  # before the models are imported

from broker.domain.states import EndReason  # noqa: E402
from broker.models import Lease, StaleLease  # noqa: E402
from broker.services.leases import ending, placing  # noqa: E402
from ports import clock  # noqa: E402
from tenants.services.walls import as_tenant  # noqa: E402


def main(seed: str, rounds: str) -> None:
    print("ready", flush=True)
    chance, leases = Random(int(seed)), [line.split() for line in sys.stdin]
    placed = left = 0
    for _ in range(int(rounds)):
        lease_id, tenant_id = chance.choice(leases)
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            if lease.state == "queued":
                done = placing.place(lease, now=clock.now())
                placed, left = placed + done, left + (not done)
        if lease.state == "provisioning" and chance.random() < 0.6:
            _let_go(lease_id, tenant_id)
    print(placed, left, flush=True)


def _let_go(lease_id: str, tenant_id: str) -> None:
    """Have a lease's places given back; it is asked for anew under another id by nobody: others get its place."""
    try:
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            if lease.state == "provisioning":
                ending.release(lease, reason=EndReason.BY_TENANT, now=clock.now())
                ending.finish(lease, now=clock.now())
    except (StaleLease, ending.AlreadyOver):
        return  # another process was faster, while this one let go or before it began to


if __name__ == "__main__":
    main(*sys.argv[1:])
