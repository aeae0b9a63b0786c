"""Letters that are to be sent: the row is the queue, and stays as the proof that it was sent."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from billing.models.keys import ID_LENGTH, letter_id
from tenants.models.tenants import TenantOwned


class Unsent(models.TextChoices):
    """Why nothing more is done about a letter that did not reach everybody."""

    UNWANTED = "unwanted"  # its tenant turned such letters off
    OVERTAKEN = "overtaken"  # what it was to tell is no longer so
    NOBODY = "nobody"  # there is no address
    GIVEN_UP = "given_up"  # it was tried for days


FOR_PEOPLE = (Unsent.NOBODY, Unsent.GIVEN_UP)


class Letter(TenantOwned):
    """One letter about one thing; to whom and in which words is settled when it is sent."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=letter_id)
    kind = models.CharField(max_length=20)
    about = models.CharField(max_length=ID_LENGTH)  # the id of what it tells of
    made_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)  # when a worker should try; None once nothing is left to do
    claimed_until = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    sent_to = ArrayField(models.CharField(max_length=254), default=list, db_default=[])
    sent_at = models.DateTimeField(null=True)  # to everybody whom it concerns
    trouble = models.CharField(max_length=300, blank=True, default="")  # what went wrong last
    unsent = models.CharField(max_length=10, choices=Unsent, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "kind", "about"], name="letter_once"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="letter_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["made_at"], name="letter_unsent", condition=Q(unsent__in=FOR_PEOPLE)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.about}"
