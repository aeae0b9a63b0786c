"""Projects of a tenant: a tree, each node of which may carry quotas."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.default_ids import ID_LENGTH, project_id
from tenants.models.tenants import TenantOwned


class ProjectQuerySet(models.QuerySet["Project"]):
    def open(self) -> "ProjectQuerySet":
        return self.filter(archived_at=None)


class Project(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=project_id)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    # Ids from the root to this node, itself included: one lookup answers "every quota above me".
    path = ArrayField(models.CharField(max_length=ID_LENGTH))
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "parent", "name"], name="project_name_once", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return self.name
