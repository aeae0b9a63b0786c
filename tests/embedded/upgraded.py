"""Reapply the schema rules to a seeded database."""

import django

django.setup()

from django.core.management import call_command  # noqa: E402

from broker.models import Allocation, Lease, Offering, Transition  # noqa: E402
from broker.services.placement import available_capacity  # noqa: E402
from broker.services.reports import invariant_checks  # noqa: E402
from ports import clock  # noqa: E402
from tenants.models import ApiToken  # noqa: E402
from tenants.services.rls import staff_scope  # noqa: E402

# Without row-level security, triggers, constraints and views; the apps above go back with it.
BARE = ("tenants", "0001")


def read_state() -> dict[str, list[object]]:
    """Return leases, allocations, ledger and availability of the database."""
    with staff_scope():
        return {
            "leases": list(Lease.objects.order_by("pk").values_list("pk", "state", "seq", "generation")),
            "places": list(
                Allocation.objects.order_by("pk").values_list("pk", "gpu", "placement", "held_at", "released_at")
            ),
            "ledger": list(
                Transition.objects.order_by("lease_id", "seq").values_list("lease_id", "seq", "at", "after")
            ),
            "makers": list(ApiToken.objects.order_by("pk").values_list("pk", "made_by", "made_by_label")),
            "free": sorted(available_capacity.count_available(Offering.objects.all()).items()),
        }


def main() -> None:
    """Print the seed's outcome; fail on changed or invalid rows."""
    call_command("seed")
    before = read_state()
    assert all(before.values()), "nothing was there to be migrated"
    call_command("migrate", *BARE, database="owner", interactive=False, verbosity=0)
    call_command("migrate", database="owner", interactive=False, verbosity=0)
    after = read_state()
    assert after == before, [name for name in before if after[name] != before[name]]
    with staff_scope():
        assert [each.name for each in invariant_checks.check_invariants(now=clock.now()) if not each.holds] == []
    print("upgraded")


if __name__ == "__main__":
    main()
