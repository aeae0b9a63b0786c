"""Rotation of encryption keys: all stored secrets are encrypted with the newest key.

Older keys can be removed from the ring afterwards.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from broker.models import (
    ClusterCredential,
    LaunchTemplate,
    Lease,
    LeaseSchedule,
    OperatorTemplate,
    Secret,
    SecretVersion,
)
from broker.models.encrypted_variables import is_unreadable
from broker.services.launch_templates import template_choice
from broker.services.secrets import variable_encryption
from broker.services.secrets.variable_encryption import NO_KEY, VariableUnreadable
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
    templates: int  # with variables


def reencrypt_all() -> ReencryptedCounts:
    """Encrypt everything that is stored encrypted with the newest key; may be repeated."""
    with system_scope():
        tenants = sorted(set(Secret.objects.values_list("tenant_id", flat=True)))
    return ReencryptedCounts(
        _reencrypt_credentials(),
        sum(_reencrypt_values(each) for each in tenants),
        _reencrypt_variables(),
        second_factors.reencrypt_second_factors(),
        _reencrypt_templates(),
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
        live = Lease.objects.live().exclude(Q(env={}) & Q(launch_template={}))
        leases = list(live.order_by("pk").values_list("pk", "tenant_id"))
        schedules = list(LeaseSchedule.objects.order_by("pk").values_list("pk", "tenant_id"))
    for lease_id, tenant_id in leases:
        with tenant_scope(tenant_id):
            for lease in Lease.objects.select_for_update(of=("self",)).filter(pk=lease_id):
                env = variable_encryption.reencrypt_variables(lease.env, owner_id=lease.pk)
                saved = variable_encryption.reencrypt_variables(lease.template_env, owner_id=lease.pk)
                copy = template_choice.with_variables(lease.launch_template, saved)
                Lease.objects.filter(pk=lease.pk).update(env=env, launch_template=copy)
    for schedule_id, tenant_id in schedules:
        with tenant_scope(tenant_id):
            for schedule in LeaseSchedule.objects.select_for_update(of=("self",)).filter(pk=schedule_id):
                env = variable_encryption.reencrypt_variables(schedule.request["env"], owner_id=schedule.pk)
                LeaseSchedule.objects.filter(pk=schedule.pk).update(request={**schedule.request, "env": env})
    return len(leases) + len(schedules)


def _reencrypt_templates() -> int:
    """Encrypt the variables of saved templates again; those in place are read with any key."""
    with system_scope():
        own = list(LaunchTemplate.objects.exclude(env={}).order_by("pk").values_list("pk", "tenant_id"))
        shared = list(OperatorTemplate.objects.exclude(env={}).order_by("pk").values_list("pk", flat=True))
    for template_id, tenant_id in own:
        with tenant_scope(tenant_id):
            _reencrypt_template(LaunchTemplate.objects.all(), template_id)
    for template_id in shared:
        with transaction.atomic():
            _reencrypt_template(OperatorTemplate.objects.all(), template_id)
    return len(own) + len(shared)


def _reencrypt_template(rows: QuerySet[Any], template_id: str) -> None:
    for template in rows.select_for_update(of=("self",)).filter(pk=template_id):
        if is_unreadable(template.env):
            raise VariableUnreadable(f"the variables of template {template.name} cannot be read: {NO_KEY}")
        rows.filter(pk=template_id).update(env=template.env)


def _reencrypt_values(tenant_id: str) -> int:
    with tenant_scope(tenant_id):
        rows = list(SecretVersion.objects.select_for_update(of=("self",)).order_by("pk"))
        for row in rows:
            SecretVersion.objects.filter(pk=row.pk).update(sealed=crypto.reencrypt(bytes(row.sealed)))
        return len(rows)
