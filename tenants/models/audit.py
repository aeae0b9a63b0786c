"""Audit log: who changed what, when; append-only by trigger."""

from django.db import models
from django.db.models import Q

from tenants.models.default_ids import ID_LENGTH, audit_id


class AuditEvent(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=audit_id)
    tenant_id = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_index=True)
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16)  # user, service_account, staff, system
    actor_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")
    action = models.CharField(max_length=60)  # lease.request, token.create …
    subject_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    subject_label = models.CharField(max_length=254, blank=True, default="")
    detail = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        indexes = [
            models.Index(fields=["tenant_id", "-at", "-id"], name="audit_newest_first"),
            models.Index(fields=["-id"], name="audit_of_operators", condition=Q(actor_kind="staff")),
            # Most of these are visits of pages; changes among them are few.
            models.Index(
                fields=["-id"],
                name="audit_changes_of_operators",
                condition=Q(actor_kind="staff") & ~Q(action__startswith="ops."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_id}"
