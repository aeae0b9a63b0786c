"""Saved secrets for tests."""

from broker.models import Secret, SecretVersion
from broker.services.secrets import secret_store
from tenants.models import Project
from tenants.services.rls import tenant_scope
from tests.simulation import NOW, TenantContext

VALUE = "hf_plain-value-nobody-may-see"


def save_secret(
    owner: TenantContext, name: str = "HF_TOKEN", value: str = VALUE, *, project: Project | None = None
) -> Secret:
    """Save a secret of a tenant."""
    with tenant_scope(owner.tenant.pk):
        return secret_store.create_secret(
            project=project or owner.project, name=name, value=value, actor=owner.actor, now=NOW
        )


def replace_value(owner: TenantContext, secret: Secret, value: str) -> Secret:
    with tenant_scope(owner.tenant.pk):
        return secret_store.replace_value(secret, value, actor=owner.actor, now=NOW)


def delete_secret(owner: TenantContext, secret: Secret) -> None:
    with tenant_scope(owner.tenant.pk):
        secret_store.delete_secret(secret, actor=owner.actor, now=NOW)


def stored_versions(owner: TenantContext, secret: Secret) -> list[int]:
    with tenant_scope(owner.tenant.pk):
        rows = SecretVersion.objects.filter(secret=secret).order_by("version")
        return list(rows.values_list("version", flat=True))
