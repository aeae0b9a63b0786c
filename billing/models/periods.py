"""Billing periods: a tenant's months in its own time zone; half-open, never overlapping."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q

from tenants.models.tenants import TenantOwned

OPEN, CLOSED = "open", "closed"
MAX_BLOCKED_REASON_LENGTH = 300


class BillingPeriod(TenantOwned):
    label = models.CharField(max_length=7)  # 2026-11
    span = DateTimeRangeField()
    time_zone = models.CharField(max_length=60)
    status = models.CharField(max_length=6, default=OPEN)
    closed_at = models.DateTimeField(null=True)
    # Why it could not be closed after its end, if a person has to fix something; empty once closed.
    blocked_reason = models.CharField(max_length=MAX_BLOCKED_REASON_LENGTH, blank=True, default="", db_default="")

    # Review before the invoice is final: when its charges were complete, and what an operator decided since.
    review_since = models.DateTimeField(null=True)
    held_reason = models.CharField(max_length=MAX_BLOCKED_REASON_LENGTH, blank=True, default="", db_default="")
    held_at = models.DateTimeField(null=True)
    approved_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=254, blank=True, default="", db_default="")  # who held or approved it
    revision = models.PositiveSmallIntegerField(default=0, db_default=0)  # how often it was opened again

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(held_at=None, held_reason="")
                | Q(held_at__isnull=False, approved_at=None) & ~Q(held_reason=""),
                name="period_held_for_a_reason",
            ),
            ExclusionConstraint(
                name="periods_never_overlap",
                expressions=[(F("tenant"), RangeOperators.EQUAL), ("span", RangeOperators.OVERLAPS)],
            ),
            models.UniqueConstraint(fields=["tenant", "label"], name="period_once"),
            models.CheckConstraint(condition=Q(status__in=[OPEN, CLOSED]), name="period_status_known"),
        ]

    def __str__(self) -> str:
        return self.label
