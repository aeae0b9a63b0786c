"""API tokens of users and service accounts."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from tenants.models.default_ids import ID_LENGTH, token_id
from tenants.models.members import ServiceAccount
from tenants.models.projects import Project
from tenants.models.tenants import TenantOwned
from tenants.models.users import User


class ApiToken(TenantOwned):
    """API token `gpb_<prefix>_<secret>`.

    It is found by its public prefix, compared by SHA-256 and shown once.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=token_id)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    service_account = models.ForeignKey(ServiceAccount, null=True, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)  # None: wherever its bearer may
    # The token it was created with; it ends with that one at the latest.
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=40))
    # An actor's id, as in the audit log.
    made_by = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")
    made_by_label = models.CharField(max_length=254, blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(user=None) ^ Q(service_account=None), name="token_has_one_bearer")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"
