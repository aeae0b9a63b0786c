"""Seeds a database, takes its schema back to what an older release had, and upgrades it: its rows must not notice."""

import django

django.setup()

from django.core.management import call_command  # noqa: E402

from broker.models import Allocation, Lease, Offering, Transition  # noqa: E402
from broker.services import capacity, proofs  # noqa: E402
from ports import clock  # noqa: E402
from tenants.models import ApiToken  # noqa: E402
from tenants.services.walls import as_staff  # noqa: E402

# Before placement read what changed, before leases were moved, and before it was known who made a token.
OLDER = (("broker", "0018"), ("tenants", "0007"))


def told() -> dict[str, list[object]]:
    """Return what leases, places and ledger say, and how much of every offering is free."""
    with as_staff():
        return {
            "leases": list(Lease.objects.order_by("pk").values_list("pk", "state", "seq", "generation")),
            "places": list(
                Allocation.objects.order_by("pk").values_list(
                    "pk", "gpu", "placement", "held_at", "released_at"
                )
            ),
            "ledger": list(
                Transition.objects.order_by("lease_id", "seq").values_list("lease_id", "seq", "at", "after")
            ),
            "makers": list(ApiToken.objects.order_by("pk").values_list("pk", "made_by", "made_by_label")),
            "free": sorted(capacity.availability(Offering.objects.all()).items()),
        }


def main() -> None:
    """Print the seed's answer; fail where an upgrade changed a row, or where the rows contradict each other."""
    call_command("seed")
    before = told()
    assert all(before.values()), "nothing was there to be upgraded"
    for floor, number in OLDER:
        call_command("migrate", floor, number, database="owner", interactive=False, verbosity=0)
    call_command("migrate", database="owner", interactive=False, verbosity=0)
    after = told()
    assert after == before, [name for name in before if after[name] != before[name]]
    with as_staff():
        assert [each.name for each in proofs.check(now=clock.now()) if not each.holds] == []
    print("upgraded")


if __name__ == "__main__":
    main()
