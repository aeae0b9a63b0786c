"""Orphans: objects of ours in a cluster that no lease accounts for.

An orphan of a known earlier lease generation is removed at once. One that our rows do not know waits a
day, because the rows may be wrong, for instance restored from an old backup. If one sweep would remove
too many, none is removed until an operator agrees to the list by name.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Count

from broker.domain.lifecycle.lease_transitions import HOLDS_CAPACITY
from broker.models import Lease, Orphan
from broker.provisioners.base import ClusterUnreachable, Provisioner, parse_spec_name
from broker.services.inventory import cluster_provisioners
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)
REMOVAL_DELAY = timedelta(hours=24)
MASS_REMOVAL_SHARE, ALWAYS_ALLOWED = 10, 10  # one in ten may be removed by a sweep, and a few always
SIMULATED = "simulated"  # the subject of the simulated clusters, which share one provisioner


def remove_orphans(*, now: datetime) -> int:
    """Remove orphans in every cluster that answers; return how many."""
    return sum(_remove_from(*each, now) for each in cluster_provisioners.provisioners_by_cluster())


def remove_orphans_in(cluster_id: str, *, now: datetime) -> int:
    """Remove orphans in one cluster, whose agent observed some; return how many."""
    return sum(
        _remove_from(*each, now) for each in cluster_provisioners.provisioners_by_cluster() if each[0] == cluster_id
    )


def _remove_from(cluster_id: str | None, provisioner: Provisioner, now: datetime) -> int:
    gone = 0
    try:
        there = provisioner.names()
        # Read after the cluster was listed: a lease created in between cannot be mistaken for an orphan.
        for orphan in _choose_removable(_update_orphans(cluster_id, there, now), len(there), now):
            provisioner.remove_named(orphan.name, now=now)
            Orphan.objects.filter(pk=orphan.pk, deletion_requested_at=None).update(deletion_requested_at=now)
            gone += 1
    except ClusterUnreachable as error:  # other clusters must not wait for this one
        log.warning("cluster did not list its objects", cluster=cluster_id or SIMULATED, why=str(error))
    return gone


@transaction.atomic
def _update_orphans(cluster_id: str | None, there: Collection[str], now: datetime) -> list[Orphan]:
    """Store the current orphans and drop those that are gone or accounted for."""
    parts = {name: parse_spec_name(name) for name in there}
    with system_scope():
        rows = Lease.objects.filter(pk__in={lease_id for lease_id, _ in parts.values()})
        books = {pk: (state, newest) for pk, state, newest in rows.values_list("id", "state", "generation")}
    found = {}
    for name, (lease_id, generation) in parts.items():
        state, newest = books.get(lease_id, ("", -1))
        if state not in HOLDS_CAPACITY or generation != newest:
            found[name] = generation <= newest
    registered = Orphan.objects.filter(cluster=cluster_id)
    registered.exclude(name__in=found).delete()
    for known in (True, False):
        names = [name for name, is_known in found.items() if is_known is known]
        registered.filter(name__in=names).exclude(known=known).update(known=known)
        Orphan.objects.bulk_create(
            [Orphan(cluster_id=cluster_id, name=name, known=known, found_at=now) for name in names],
            ignore_conflicts=True,
        )
    return list(registered.order_by("name"))


def _choose_removable(orphans: Sequence[Orphan], there: int, now: datetime) -> list[Orphan]:
    """Return the orphans to remove now; newly ripe ones go all together or not."""
    confirmed = [each for each in orphans if each.deletion_approved_at or each.deletion_requested_at]
    open_question = any(each.held_at for each in orphans if each not in confirmed)
    ripe = [
        each
        for each in orphans
        if each not in confirmed and not each.held_at and _is_ripe(each, now, in_doubt=open_question)
    ]
    if len(ripe) <= max(ALWAYS_ALLOWED, there // MASS_REMOVAL_SHARE):
        return confirmed + ripe
    Orphan.objects.filter(pk__in=[each.pk for each in ripe]).update(held_at=now)
    log.error("too many objects would be deleted at once; an operator must confirm", held=len(ripe), of=there)
    return confirmed


def _is_ripe(orphan: Orphan, now: datetime, *, in_doubt: bool) -> bool:
    return orphan.known or (not in_doubt and now - orphan.found_at >= REMOVAL_DELAY)


@transaction.atomic
def approve_removal(cluster_id: str | None, names: Collection[str], *, why: str, actor: Actor, now: datetime) -> int:
    """Approve the removal of these orphans; return how many were waiting."""
    waiting = Orphan.objects.filter(cluster=cluster_id, name__in=names, deletion_approved_at=None)
    count = waiting.update(deletion_approved_at=now)
    audit.record(
        "orphans.delete",
        cluster_id or SIMULATED,
        f"{count} objects without a lease",
        actor=actor,
        now=now,
        reason=why,
        names=sorted(names)[:100],
    )
    return count


def count_orphans() -> list[tuple[str, int]]:
    """Return the number of orphans by cluster name."""
    rows = Orphan.objects.values_list("cluster__name").annotate(count=Count("id")).order_by("cluster__name")
    return [(name or SIMULATED, count) for name, count in rows]
