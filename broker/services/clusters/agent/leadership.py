"""Leadership of a cluster's agents: only one of them follows it."""

from django.db import connection

from broker.models import Cluster

LEADER_LOCK_KEY = (
    2  # first of the two keys of our advisory locks; 1: quotas and budgets, 3: grants, 4: top-ups, 7: roll-up of a node
)


def try_become_leader(cluster: Cluster) -> bool:
    """Try to take a cluster's leader lock, held until this connection ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [LEADER_LOCK_KEY, cluster.pk])
        return bool(cursor.fetchone()[0])
