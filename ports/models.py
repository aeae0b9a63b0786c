"""The outbox table: messages sent to workers after their transaction has committed."""

from django.db import models


class OutboxMessage(models.Model):
    """Outbox message: a task's name and the id it concerns.

    It may be sent twice; tasks are idempotent.
    """

    task = models.CharField(max_length=80)
    subject = models.CharField(max_length=80)
    tenant_id = models.CharField(max_length=40, blank=True, default="")
    # The request that caused it, for tracing through the logs.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["at", "id"], name="ring_order")]

    def __str__(self) -> str:
        return f"{self.task}({self.subject})"
