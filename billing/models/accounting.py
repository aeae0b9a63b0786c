"""Exchange rates for VAT, and how the journal is exported to an accountant."""

from django.db import models
from django.db.models import Q

from billing.models.default_ids import ID_LENGTH, exchange_rate_id

MAX_SOURCE_LENGTH = 80
MAX_ACCOUNT_LENGTH, MAX_KEY_LENGTH = 9, 4
ACCOUNT_NUMBER, POSTING_KEY = r"^[0-9]{1,9}$", r"^[0-9]{0,4}$"


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


class JournalSettings(models.Model):
    """For whom the journal is exported; one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    chart = models.CharField(max_length=5, default="skr03")  # whose numbers hold where none is set
    advisor = models.PositiveIntegerField(default=1001)  # DATEV's Beraternummer
    client = models.PositiveIntegerField(default=1)  # DATEV's Mandantennummer
    account_length = models.PositiveSmallIntegerField(default=4)
    fiscal_year_month = models.PositiveSmallIntegerField(default=1)  # in which a fiscal year begins
    time_zone = models.CharField(max_length=60, default="UTC")  # of the days of bookings
    version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="journal_settings_once"),
            models.CheckConstraint(condition=Q(chart__in=["skr03", "skr04"]), name="journal_chart_known"),
            models.CheckConstraint(
                condition=Q(advisor__gte=1001, advisor__lte=9_999_999, client__gte=1, client__lte=99_999),
                name="journal_numbers_of_datev",
            ),
            models.CheckConstraint(
                condition=Q(account_length__gte=4, account_length__lte=8), name="journal_account_length"
            ),
            models.CheckConstraint(
                condition=Q(fiscal_year_month__gte=1, fiscal_year_month__lte=12), name="journal_year_begins"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.advisor}/{self.client}"


class JournalAccount(models.Model):
    """The number of an account of the journal in the accountant's chart."""

    key = models.CharField(primary_key=True, max_length=40)  # account type, with the tax treatment if any
    number = models.CharField(max_length=MAX_ACCOUNT_LENGTH)
    posting_key = models.CharField(max_length=MAX_KEY_LENGTH, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(number__regex=ACCOUNT_NUMBER, posting_key__regex=POSTING_KEY),
                name="journal_account_of_digits",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.number}"
