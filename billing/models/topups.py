"""Money that a tenant adds to its wallet."""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, topup_id
from billing.models.gateway_transactions import (
    MAX_REASON_LENGTH,
    UNSETTLED,
    GatewayTransaction,
    gateway_transaction_constraints,
)
from tenants.models.tenants import TenantOwned


class TopUp(GatewayTransaction):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=topup_id)
    window = models.BigIntegerField(null=True)  # for automatic top-ups: at most one per time window
    opened_by = models.CharField(max_length=ID_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], condition=Q(status__in=UNSETTLED), name="one_topup_at_a_time"),
            models.UniqueConstraint(fields=["tenant", "window"], name="one_topup_a_window"),
            *gateway_transaction_constraints("topup"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="topup_waits", condition=Q(status="pending")),
            models.Index(fields=["opened_at"], name="topup_stuck", condition=Q(status="stuck")),
        ]

    @property
    def automatic(self) -> bool:
        return self.window is not None


class AutoTopUp(TenantOwned):
    """The automatic top-up of a wallet: threshold and amount; it stops after a decline."""

    id = models.BigAutoField(primary_key=True)
    threshold_minor = models.BigIntegerField()
    minor = models.BigIntegerField()
    set_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    why = models.CharField(max_length=MAX_REASON_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="auto_topup_once_a_tenant"),
            models.CheckConstraint(condition=Q(threshold_minor__gt=0, minor__gt=0), name="auto_topup_of_something"),
        ]

    def __str__(self) -> str:
        return f"top-up of {self.tenant_id} by itself"
