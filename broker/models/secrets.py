"""Saved secrets of a project: values that leases receive as environment variables.

A value is stored encrypted and is never shown again.
"""

from django.db import models

from broker.models.keys import ID_LENGTH, secret_id, secret_version_id
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned

NAME_LENGTH = 100


class SecretKind(models.TextChoices):
    VARIABLE = "variable"
    REGISTRY = "registry"  # its value is the login of an image registry


class Secret(TenantOwned):
    """A named secret of a project; `version` names its newest value."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=secret_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(
        max_length=10, choices=SecretKind, default=SecretKind.VARIABLE, db_default=SecretKind.VARIABLE
    )
    registry = models.CharField(max_length=255, blank=True, default="", db_default="")  # host of the registry
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=ID_LENGTH)
    created_by_label = models.CharField(max_length=254)
    updated_at = models.DateTimeField()
    updated_by = models.CharField(max_length=ID_LENGTH)
    updated_by_label = models.CharField(max_length=254)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "project", "name"], name="secret_named_once")]
        indexes = [models.Index(fields=["tenant", "-id"], name="secret_newest_first")]

    def __str__(self) -> str:
        return self.name


class SecretVersion(TenantOwned):
    """One encrypted value of a secret; replaced ones stay while leases use them."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=secret_version_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    sealed = models.BinaryField()
    size_bytes = models.PositiveIntegerField()  # of the value
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "secret", "version"], name="secret_version_stored_once")
        ]

    def __str__(self) -> str:
        return f"{self.secret_id} version {self.version}"
