"""The books of a payment gateway that is only simulated. Nobody but that gateway reads or writes them."""

from django.db import models


class SimulatedCharge(models.Model):
    """A charge under its key: once made, its outcome stays."""

    key = models.CharField(primary_key=True, max_length=60)
    payer = models.CharField(max_length=60)
    minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    text = models.CharField(max_length=200)
    declined = models.BooleanField()
    made_at = models.DateTimeField()
    answers_at = models.DateTimeField()  # a slow one is made, but says so only later

    def __str__(self) -> str:
        return self.key


class SimulatedPayer(models.Model):
    """What the next attempts to charge somebody will suffer from, one of each: see the gateway's Ill."""

    payer = models.CharField(primary_key=True, max_length=60)
    ills = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.payer


class SimulatedRefund(models.Model):
    """What of a charge was sent back, under its key."""

    key = models.CharField(primary_key=True, max_length=60)
    charge = models.ForeignKey(SimulatedCharge, on_delete=models.PROTECT, related_name="+")
    minor = models.BigIntegerField()
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key
