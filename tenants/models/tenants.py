"""Tenants, and the base class of every row that belongs to one."""

from django.db import models

from tenants.models.default_ids import ID_LENGTH, tenant_id


class Tenant(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=tenant_id)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=60, default="UTC")  # decides only where months begin
    currency = models.CharField(max_length=3, default="EUR")
    created_at = models.DateTimeField()
    suspended_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class TenantOwned(models.Model):
    """A row of a tenant's data; row_level_security.sql of its app lists its table."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True
