"""Giving queued leases their places: oldest first, small ones may pass, and nobody starves."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.states import LeaseState
from broker.models import Allocation, Lease, StaleLease
from broker.services.capacity import Card, Pool, Seating, cards_of, pool_of, seat
from ports import doorbell
from tenants.services.walls import as_sweep, as_tenant

TRIES = 4
BATCH = 200
# From then on younger leases of the pool wait behind it, so that a large gang lands at last.
PATIENCE = timedelta(hours=1)
LOOK_AGAIN = timedelta(seconds=10)
GUARDS = {"one_lease_per_place", "one_isolation_per_card", "no_strangers_on_a_soft_card"}


def serve(pool: Pool, *, now: datetime) -> int:
    """Place every waiting lease of a pool that fits, oldest first; return how many were placed."""
    placed = 0
    for lease_id, tenant_id in waiting(pool):
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").filter(pk=lease_id, state="queued").first()
            if lease is None:
                continue
            if place(lease, now=now):
                placed += 1
            elif now - lease.created_at > PATIENCE:
                break
    return placed


def waiting(pool: Pool) -> list[tuple[str, str]]:
    """Return (lease, tenant) of a pool's queue, oldest first."""
    model, region = pool
    with as_sweep():
        queue = Lease.objects.filter(state="queued", offering__gpu_model=model, offering__region=region)
        return list(queue.order_by("created_at", "id").values_list("id", "tenant_id")[:BATCH])


OLDER = """
SELECT EXISTS (
  SELECT FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id
   WHERE o.gpu_model_id = %s AND o.region = %s AND (w.created_at, w.lease_id) < (%s, %s))
"""


def is_first(lease: Lease) -> bool:
    """Tell whether nobody of any tenant has waited longer for a card of its pool."""
    with connection.cursor() as cursor:
        cursor.execute(OLDER, [*pool_of(lease.offering), lease.created_at, lease.pk])
        return not cursor.fetchone()[0]


def place(lease: Lease, *, now: datetime) -> bool:
    """Give one queued lease its places; False leaves it in the queue with a plain reason.

    Two placers may decide at once: PostgreSQL lets one of them have the place, the other looks again.
    """
    for _ in range(TRIES):
        cards = cards_of(pool_of(lease.offering))
        seating = seat(lease.offering, cards, quantity=lease.quantity, same_node=lease.same_node)
        if seating is None:
            _wait(lease, cards, now)
            return False
        try:
            with transaction.atomic():
                _hold(lease, seating, now)
        except IntegrityError as error:
            if getattr(error.__cause__, "diag").constraint_name not in GUARDS:  # noqa: B009
                raise
            lease.refresh_from_db()
        except StaleLease:
            return False
        else:
            return True
    return False


def _hold(lease: Lease, seating: Seating, now: datetime) -> None:
    offering, generation = lease.offering, lease.generation + 1
    Allocation.objects.bulk_create(
        [
            Allocation(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=generation,
                gpu_id=s.gpu,
                placement=NumericRange(s.placement.start, s.placement.end, "[)"),
                profile=offering.profile,
                isolation=offering.isolation,
                may_share=seating.cards[s.gpu].shares_soft,
                held_at=now,
            )
            for s in seating.seats
        ]
    )
    lease.generation = generation
    where = ", ".join(sorted({card.where for card in seating.cards.values()}))
    lease.move(
        LeaseState.PROVISIONING,
        now=now,
        cause=f"placed on {where}"[:200],
        generation=generation,
        due_at=now + LOOK_AGAIN,
        tries=0,
        waits_for="",
        progress={},
    )
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)


def _wait(lease: Lease, cards: Collection[Card], now: datetime) -> None:
    reason = why_not(lease, cards)
    due = now + LOOK_AGAIN
    if lease.waits_for != reason:
        Lease.objects.filter(pk=lease.pk, state="queued").update(
            waits_for=reason, due_at=due, version=lease.version + 1
        )
        lease.waits_for, lease.version = reason, lease.version + 1
    else:
        Lease.objects.filter(pk=lease.pk, state="queued").update(due_at=due)


def why_not(lease: Lease, cards: Collection[Card]) -> str:
    """Say in one sentence what a request waits for."""
    label, region = lease.offering.label, lease.offering.region
    if not cards:
        return f"Waits for {label}: no card of this model is in service in {region} now."
    free = _most_free(lease, cards)
    if lease.quantity == 1:
        return f"Waits for one free {label}. Every one in {region} is taken; the next release starts it."
    where = " on one node" if lease.same_node else ""
    return f"Waits for {lease.quantity} free {label}{where}. {_number(free)} free now."


def _number(count: int) -> str:
    return {0: "None is", 1: "One is"}.get(count, f"{count} are")


def _most_free(lease: Lease, cards: Collection[Card]) -> int:
    for count in range(lease.quantity - 1, 0, -1):
        if seat(lease.offering, cards, quantity=count, same_node=lease.same_node):
            return count
    return 0
