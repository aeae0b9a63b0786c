"""Dunning actions taken on overdue invoices. Append-only."""

from django.db import models
from django.db.models import Q

from billing.models.invoices import Invoice
from tenants.models.tenants import TenantOwned


class DunningStep(TenantOwned):
    id = models.BigAutoField(primary_key=True)
    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="reminders")
    n = models.PositiveSmallIntegerField()  # from 0
    action = models.CharField(max_length=10)
    minor = models.BigIntegerField()  # due at that time
    done_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "invoice", "n"], name="dunning_step_once"),
            models.CheckConstraint(condition=Q(minor__gt=0), name="dunning_of_something"),
            models.CheckConstraint(condition=Q(action__in=["remind", "suspend", "end"]), name="dunning_action_known"),
        ]

    def __str__(self) -> str:
        return f"{self.invoice_id} {self.n} {self.action}"
