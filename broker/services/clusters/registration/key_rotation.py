"""Rotation of encryption keys: all stored secrets are encrypted with the newest key.

Older keys can be removed from the ring afterwards.
"""

from dataclasses import dataclass

from django.db import transaction

from broker.models import ClusterCredential, Secret, SecretVersion
from ports import crypto
from tenants.services.rls import system_scope, tenant_scope


@dataclass(frozen=True)
class ReencryptedCounts:
    """How many rows were encrypted again."""

    cluster_credentials: int
    secret_values: int


def reencrypt_all() -> ReencryptedCounts:
    """Encrypt cluster credentials and saved secrets with the newest key; may be repeated."""
    with system_scope():
        tenants = sorted(set(Secret.objects.values_list("tenant_id", flat=True)))
    return ReencryptedCounts(_reencrypt_credentials(), sum(_reencrypt_values(each) for each in tenants))


@transaction.atomic
def _reencrypt_credentials() -> int:
    rows = list(ClusterCredential.objects.select_for_update(of=("self",)).order_by("pk"))
    for row in rows:
        ClusterCredential.objects.filter(pk=row.pk).update(sealed=crypto.reencrypt(bytes(row.sealed)))
    return len(rows)


def _reencrypt_values(tenant_id: str) -> int:
    with tenant_scope(tenant_id):
        rows = list(SecretVersion.objects.select_for_update(of=("self",)).order_by("pk"))
        for row in rows:
            SecretVersion.objects.filter(pk=row.pk).update(sealed=crypto.reencrypt(bytes(row.sealed)))
        return len(rows)
