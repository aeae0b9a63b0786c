"""Place leases and release them: `python -m tests.broker.services.queue.placement_process <seed> <rounds>`.

Their ids come on stdin. Prints how many it placed, and how often another process was faster or no slot was free.
"""

import sys
from random import Random

import django

django.setup()  # before the models are imported

from broker.domain.lifecycle.states import EndReason  # noqa: E402
from broker.models import Lease, StaleLease  # noqa: E402
from broker.services.leases.lifecycle import termination  # noqa: E402
from broker.services.queue import lease_placement  # noqa: E402
from ports import clock  # noqa: E402
from tenants.services.rls import tenant_scope  # noqa: E402


def main(seed: str, rounds: str) -> None:
    print("ready", flush=True)
    chance, leases = Random(int(seed)), [line.split() for line in sys.stdin]
    placed = left = 0
    for _ in range(int(rounds)):
        lease_id, tenant_id = chance.choice(leases)
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            if lease.state == "queued":
                done = lease_placement.place_lease(lease, now=clock.now())
                placed, left = placed + done, left + (not done)
        if lease.state == "provisioning" and chance.random() < 0.6:
            _release(lease_id, tenant_id)
    print(placed, left, flush=True)


def _release(lease_id: str, tenant_id: str) -> None:
    """Free the allocations of a lease for others."""
    try:
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            if lease.state == "provisioning":
                termination.release_lease(lease, reason=EndReason.BY_TENANT, now=clock.now())
                termination.finish_release(lease, now=clock.now())
    except (StaleLease, termination.LeaseAlreadyOver):
        return  # another process was faster


if __name__ == "__main__":
    main(*sys.argv[1:])
