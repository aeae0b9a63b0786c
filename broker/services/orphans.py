"""What a cluster runs that no lease accounts for. It is never taken down by mistake: not in haste, not in bulk.

Where our books know that a lease went on without it, it goes at once. Where they know nothing, the books may be what
is wrong, restored from an old backup for instance: it waits a day in which a person may look. And when too much would
go in one sweep, nothing does until a person agrees, by name, to what they were shown.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Count

from broker.domain.lifecycle import HOLDS_CAPACITY
from broker.models import Lease, Orphan
from broker.provisioners.base import Provisioner, Unanswered, order_parts
from broker.services import clusters
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep

log = structlog.get_logger(__name__)
QUARANTINE = timedelta(hours=24)
SHARE, FEW = 10, 10  # one of ten may go in a sweep, and a few always
SIMULATED = "simulated"  # the place of the simulated fleet, whose clusters share one provisioner


def remove_all(*, now: datetime) -> int:
    """Take down what may go in every cluster that answers; return how many."""
    return sum(_remove_in(*each, now) for each in clusters.by_cluster())


def remove_in(cluster_id: str, *, now: datetime) -> int:
    """Do the same in one cluster, whose agent saw something that must go."""
    return sum(_remove_in(*each, now) for each in clusters.by_cluster() if each[0] == cluster_id)


def _remove_in(cluster_id: str | None, provisioner: Provisioner, now: datetime) -> int:
    gone = 0
    try:
        there = provisioner.names()
        # Looked up after the cluster was: what was made in between cannot be mistaken for an orphan.
        for orphan in _may_go(_registered(cluster_id, there, now), len(there), now):
            provisioner.remove_named(orphan.name, now=now)
            Orphan.objects.filter(pk=orphan.pk, told_at=None).update(told_at=now)
            gone += 1
    except Unanswered as silence:  # another cluster's orphans need not wait for this one
        log.warning("a cluster did not say what it runs", cluster=cluster_id or SIMULATED, why=str(silence))
    return gone


@transaction.atomic
def _registered(cluster_id: str | None, there: Collection[str], now: datetime) -> list[Orphan]:
    """Write down what no lease accounts for, and forget what has gone or is accounted for after all."""
    parts = {name: order_parts(name) for name in there}
    with as_sweep():
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


def _may_go(orphans: Sequence[Orphan], there: int, now: datetime) -> list[Orphan]:
    """Choose what is deleted now; of what is ripe since, all or nothing."""
    said = [each for each in orphans if each.agreed_at or each.told_at]
    open_question = any(each.held_at for each in orphans if each not in said)
    ripe = [
        each
        for each in orphans
        if each not in said and not each.held_at and _is_ripe(each, now, in_doubt=open_question)
    ]
    if len(ripe) <= max(FEW, there // SHARE):
        return said + ripe
    Orphan.objects.filter(pk__in=[each.pk for each in ripe]).update(held_at=now)
    log.error("too much would be deleted at once: a person must agree", held=len(ripe), of=there)
    return said


def _is_ripe(orphan: Orphan, now: datetime, *, in_doubt: bool) -> bool:
    return orphan.known or (not in_doubt and now - orphan.found_at >= QUARANTINE)


@transaction.atomic
def agree(cluster_id: str | None, names: Collection[str], *, why: str, actor: Actor, now: datetime) -> int:
    """Let these go with the next sweep, in whatever number; return how many waited for that."""
    waiting = Orphan.objects.filter(cluster=cluster_id, name__in=names, agreed_at=None)
    count = waiting.update(agreed_at=now)
    audit.record(
        "orphans.agree",
        actor=actor,
        now=now,
        subject_id=cluster_id or SIMULATED,
        subject_label=f"{count} objects without a lease",
        reason=why,
        names=sorted(names)[:100],
    )
    return count


def counts() -> list[tuple[str, int]]:
    """Count what belongs to no lease, by the names of clusters."""
    rows = Orphan.objects.values_list("cluster__name").annotate(count=Count("id")).order_by("cluster__name")
    return [(name or SIMULATED, count) for name, count in rows]
