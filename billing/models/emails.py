"""Queued e-mails: the row is the queue, and stays as a record of delivery."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, queued_email_id
from tenants.models.tenants import TenantOwned


class UndeliveredReason(models.TextChoices):
    """Why an e-mail will not reach every recipient."""

    UNWANTED = "unwanted"  # the tenant turned such e-mails off
    OUTDATED = "outdated"  # what it reports no longer applies
    NO_RECIPIENT = "no_recipient"  # there is no recipient
    GIVEN_UP = "given_up"  # retried for days without success


NEEDS_ATTENTION = (UndeliveredReason.NO_RECIPIENT, UndeliveredReason.GIVEN_UP)


class QueuedEmail(TenantOwned):
    """An e-mail about one subject; recipients and text are decided when it is sent."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=queued_email_id)
    kind = models.CharField(max_length=20)
    subject_id = models.CharField(max_length=ID_LENGTH)  # the id of its subject
    made_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)  # next attempt; None once finished
    claimed_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    sent_to = ArrayField(models.CharField(max_length=254), default=list, db_default=[])
    sent_at = models.DateTimeField(null=True)  # to all recipients
    last_error = models.CharField(max_length=300, blank=True, default="")  # the last error
    undelivered_reason = models.CharField(
        max_length=12, choices=UndeliveredReason, blank=True, default="", db_default=""
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "subject_id"], name="letter_once")]
        indexes = [
            models.Index(fields=["due_at"], name="letter_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["made_at"], name="letter_unsent", condition=Q(undelivered_reason__in=NEEDS_ATTENTION)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"
