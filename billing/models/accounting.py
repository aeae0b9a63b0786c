"""Exchange rates by which VAT is stated in the supplier's currency."""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, exchange_rate_id

MAX_SOURCE_LENGTH = 80


class ExchangeRate(models.Model):
    """The price of a currency in the supplier's currency on a day. Append-only."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=exchange_rate_id)
    currency = models.CharField(max_length=3)
    own = models.CharField(max_length=3)  # the supplier's currency
    day = models.DateField()
    rate = models.BigIntegerField()  # of one unit, in 10⁻⁶ of the supplier's currency
    source = models.CharField(max_length=MAX_SOURCE_LENGTH)
    created_by = models.CharField(max_length=254)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["currency", "own", "day"], name="exchange_rate_once_a_day"),
            models.CheckConstraint(condition=Q(rate__gt=0), name="exchange_rate_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.currency} {self.day}"
