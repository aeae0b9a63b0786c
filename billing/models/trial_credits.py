"""People who had trial credit: once per mailbox, whatever tenant it was for."""

from django.db import models


class TrialCredit(models.Model):
    """A mailbox that had trial credit; it belongs to no tenant."""

    mailbox = models.CharField(primary_key=True, max_length=254)
    given_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.mailbox
