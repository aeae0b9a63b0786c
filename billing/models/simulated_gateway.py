"""Records of the simulated payment gateway; only that gateway reads or writes them."""

from django.db import models


class SimulatedCharge(models.Model):
    """A charge by idempotency key; once made, its outcome never changes."""

    key = models.CharField(primary_key=True, max_length=60)
    payer = models.CharField(max_length=60)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    text = models.CharField(max_length=200)
    declined = models.BooleanField()
    made_at = models.DateTimeField()
    answers_at = models.DateTimeField()  # a slow charge is made at once but reported only then

    def __str__(self) -> str:
        return self.key


class SimulatedPayer(models.Model):
    """Faults queued for the next charges of a payer; see GatewayFault."""

    payer = models.CharField(primary_key=True, max_length=60)
    pending_faults = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.payer


class SimulatedRefund(models.Model):
    """A refund of a charge, by idempotency key."""

    key = models.CharField(primary_key=True, max_length=60)
    charge = models.ForeignKey(SimulatedCharge, on_delete=models.PROTECT, related_name="+")
    minor = models.BigIntegerField()
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key
