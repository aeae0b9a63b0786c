"""The chain metering reads: one append-only row per step of a lease, each bound to the one before."""

from django.db import models
from django.db.models.functions import Now

from broker.models.keys import ID_LENGTH


class Transition(models.Model):
    """`at` is whole seconds; intervals are the gaps between rows, so they cannot overlap (billing.md D1)."""

    pk = models.CompositePrimaryKey("lease_id", "seq")
    lease_id = models.CharField(max_length=ID_LENGTH)
    seq = models.PositiveIntegerField()
    tenant_id = models.CharField(max_length=ID_LENGTH)
    at = models.DateTimeField()
    prev_seq = models.PositiveIntegerField(null=True)
    prev_at = models.DateTimeField(null=True)
    before = models.CharField(max_length=12, blank=True, default="")
    after = models.CharField(max_length=12)
    reason = models.CharField(max_length=20, default="none")  # EndReason
    cause = models.CharField(max_length=200, blank=True, default="")  # one plain sentence for people
    offering_id = models.CharField(max_length=ID_LENGTH)
    project_id = models.CharField(max_length=ID_LENGTH)
    quantity = models.PositiveIntegerField()
    price_class = models.CharField(max_length=10)
    generation = models.PositiveIntegerField()
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=ID_LENGTH, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")
    # Written by the database (migration 0002): the moment of writing, and what orders the event stream.
    recorded_at = models.DateTimeField(db_default=Now())
    position = models.BigIntegerField(db_default=0)
    xid = models.BigIntegerField(db_default=0)

    def __str__(self) -> str:
        return f"{self.lease_id}#{self.seq} {self.after}"
