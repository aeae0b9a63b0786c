"""Rotation of encryption keys: all stored secrets are encrypted with the newest key.

Older keys can be removed from the ring afterwards.
"""

from dataclasses import dataclass

from django.db import transaction

from broker.models import ClusterCredential, Lease, LeaseSchedule, Secret, SecretVersion
from broker.services.secrets import variable_encryption
from ports import crypto
from tenants.services import second_factors
from tenants.services.rls import system_scope, tenant_scope


@dataclass(frozen=True)
class ReencryptedCounts:
    """How many rows were encrypted again."""

    cluster_credentials: int
    secret_values: int
    variables: int  # rows of leases and schedules
    second_factors: int


def reencrypt_all() -> ReencryptedCounts:
    """Encrypt everything that is stored encrypted with the newest key; may be repeated."""
    with system_scope():
        tenants = sorted(set(Secret.objects.values_list("tenant_id", flat=True)))
    return ReencryptedCounts(
        _reencrypt_credentials(),
        sum(_reencrypt_values(each) for each in tenants),
        _reencrypt_variables(),
        second_factors.reencrypt_second_factors(),
    )


@transaction.atomic
def _reencrypt_credentials() -> int:
    rows = list(ClusterCredential.objects.select_for_update(of=("self",)).order_by("pk"))
    for row in rows:
        ClusterCredential.objects.filter(pk=row.pk).update(sealed=crypto.reencrypt(bytes(row.sealed)))
    return len(rows)


def _reencrypt_variables() -> int:
    """Encrypt the variables of leases that are not over and of schedules again."""
    with system_scope():
        leases = list(Lease.objects.live().exclude(env={}).order_by("pk").values_list("pk", "tenant_id"))
        schedules = list(LeaseSchedule.objects.order_by("pk").values_list("pk", "tenant_id"))
    for lease_id, tenant_id in leases:
        with tenant_scope(tenant_id):
            for lease in Lease.objects.select_for_update(of=("self",)).filter(pk=lease_id):
                env = variable_encryption.reencrypt_variables(lease.env, owner_id=lease.pk)
                Lease.objects.filter(pk=lease.pk).update(env=env)
    for schedule_id, tenant_id in schedules:
        with tenant_scope(tenant_id):
            for schedule in LeaseSchedule.objects.select_for_update(of=("self",)).filter(pk=schedule_id):
                env = variable_encryption.reencrypt_variables(schedule.request["env"], owner_id=schedule.pk)
                LeaseSchedule.objects.filter(pk=schedule.pk).update(request={**schedule.request, "env": env})
    return len(leases) + len(schedules)


def _reencrypt_values(tenant_id: str) -> int:
    with tenant_scope(tenant_id):
        rows = list(SecretVersion.objects.select_for_update(of=("self",)).order_by("pk"))
        for row in rows:
            SecretVersion.objects.filter(pk=row.pk).update(sealed=crypto.reencrypt(bytes(row.sealed)))
        return len(rows)
