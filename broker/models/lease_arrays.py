"""Lease arrays: equal leases that were requested together and differ in their index."""

from django.db import models

from broker.models.keys import ID_LENGTH, lease_array_id
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned


class LeaseArray(TenantOwned):
    """A set of leases from one request, each with an index from 0."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=lease_array_id)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=120)
    size = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField()
    requested_by = models.CharField(max_length=ID_LENGTH)
    requested_by_label = models.CharField(max_length=254)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="lease_array_newest")]

    def __str__(self) -> str:
        return self.name
