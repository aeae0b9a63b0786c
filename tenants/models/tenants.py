"""Tenants, and the base class of every row that belongs to one."""

from django.db import models
from django.db.models import Q

from tenants.models.default_ids import ID_LENGTH, tenant_id


class Tenant(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=tenant_id)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=60, default="UTC")  # decides only where months begin
    currency = models.CharField(max_length=3, default="EUR")
    created_at = models.DateTimeField()
    suspended_at = models.DateTimeField(null=True)
    # A new tenant is limited until an operator releases it; whoever was created by one is released from the start.
    released_at = models.DateTimeField(null=True)
    founder = models.CharField(max_length=254, blank=True, default="", db_default="")  # mailbox of who signed up
    founder_network = models.CharField(max_length=45, blank=True, default="", db_default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        indexes = [
            models.Index(fields=["founder"], name="new_tenants_of_person", condition=Q(released_at=None)),
            models.Index(fields=["founder_network"], name="new_tenants_of_network", condition=Q(released_at=None)),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_new(self) -> bool:
        """Return whether its limits as a new tenant apply."""
        return self.released_at is None


class TenantOwned(models.Model):
    """A row of a tenant's data; row_level_security.sql of its app lists its table."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")

    class Meta:
        abstract = True
