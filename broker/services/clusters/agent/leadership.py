"""Leadership of a cluster's agents: only one of them follows it."""

from django.db import connection

from broker.models import Cluster

LEADER_LOCK_KEY = 2  # first key of our advisory locks: 1 is used by quotas


def try_to_lead(cluster: Cluster) -> bool:
    """Try to become the only agent of a cluster, until this process or connection ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [LEADER_LOCK_KEY, cluster.pk])
        return bool(cursor.fetchone()[0])
