"""Idempotency records, written in the transaction of their effect."""

from django.db import models

from tenants.models.tenants import Tenant, TenantOwned


class IdempotencyRecord(TenantOwned):
    # No index of its own: `answer_once_per_key` starts with it and serves every look-up.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)
    id = models.BigAutoField(primary_key=True)
    bearer = models.CharField(max_length=40)  # owner of the key: a user or service account
    method = models.CharField(max_length=7)
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    body = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "bearer", "method", "path", "key"], name="answer_once_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.key}"
