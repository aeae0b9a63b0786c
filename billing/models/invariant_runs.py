"""Results of the invariant checks, which run in the background."""

from django.db import models


class InvariantRun(models.Model):
    """One run of all invariant checks.

    `results` are the checks in their order: {"name", "description", "found", "examples"}.
    """

    checked_at = models.DateTimeField(primary_key=True)
    results = models.JSONField()

    def __str__(self) -> str:
        return f"checks of {self.checked_at}"
