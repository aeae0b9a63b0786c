"""Launch templates: of a project, or of the operators for every tenant.

A lease keeps a copy of what it was launched with, so changing a template never changes a lease.
"""

from typing import Any

from django.db import models
from django.db.models import Q

from broker.domain.workloads.template_contents import TemplateContents, ports_from_json
from broker.domain.workloads.templates import HOME, WorkloadShape
from broker.models.encrypted_variables import EncryptedVariables
from broker.models.keys import ID_LENGTH, template_id
from broker.models.secrets import Secret
from tenants.models import Project
from tenants.models.tenants import Tenant, TenantOwned

SHAPES = tuple(each.value for each in WorkloadShape)


class SavedTemplate(models.Model):
    """Columns of every saved template."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=template_id)
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=300, blank=True, default="")
    icon = models.CharField(max_length=30)
    shape = models.CharField(max_length=10)
    image = models.CharField(max_length=300)
    entrypoint = models.CharField(max_length=2000, blank=True, default="")
    command = models.CharField(max_length=2000, blank=True, default="")
    ports = models.JSONField(default=list)  # [{"name": "web", "number": 8080, "http": true}]
    env = EncryptedVariables(default=dict)
    mount_path = models.CharField(max_length=200, default=HOME)
    needs_volume = models.BooleanField(default=False)
    readiness_path = models.CharField(max_length=200, blank=True, default="")
    token_variable = models.CharField(max_length=128, blank=True, default="")
    version = models.PositiveIntegerField(default=1)  # rises with every change
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=ID_LENGTH)
    created_by_label = models.CharField(max_length=254)
    updated_at = models.DateTimeField()
    updated_by = models.CharField(max_length=ID_LENGTH)
    updated_by_label = models.CharField(max_length=254)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def contents(self) -> TemplateContents:
        return TemplateContents(
            image=self.image,
            shape=WorkloadShape(self.shape),
            entrypoint=self.entrypoint,
            command=self.command,
            ports=ports_from_json(self.ports),
            env=tuple(sorted(self.env.items())),
            mount_path=self.mount_path,
            needs_volume=self.needs_volume,
            readiness_path=self.readiness_path,
            token_variable=self.token_variable,
        )

    def set_columns(self, values: dict[str, Any]) -> None:
        """Set some columns from their stored form."""
        for name, value in values.items():
            setattr(self, name, value)


class LaunchTemplate(TenantOwned, SavedTemplate):
    """A template of a project."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, db_index=False)
    pull_secret = models.ForeignKey(Secret, on_delete=models.PROTECT, null=True, related_name="templates")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "project", "name"], name="template_named_once"),
            models.CheckConstraint(condition=Q(shape__in=SHAPES), name="template_shape_known"),
        ]
        indexes = [models.Index(fields=["tenant", "-id"], name="template_newest_first")]


class OperatorTemplate(SavedTemplate):
    """A template of the operators, offered to every tenant."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], name="operator_template_named_once"),
            models.CheckConstraint(condition=Q(shape__in=SHAPES), name="operator_template_shape_known"),
        ]
