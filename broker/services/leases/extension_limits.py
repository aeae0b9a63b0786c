"""Limits of automatic extension, checked at launch and at every change."""

from datetime import datetime

from django.conf import settings

from broker.domain.lifecycle.automatic_extension import MIN_EXTENSION_S, MIN_STEP_S, AutomaticExtension
from tenants.services.errors import InvalidValue


def check_automatic_extension(wanted: AutomaticExtension, *, max_duration_s: int, end_date: datetime | None) -> None:
    """Raise InvalidValue for an automatic extension that could never work as asked."""
    if wanted == AutomaticExtension():
        return
    longest_s = settings.MAX_LEASE_HOURS * 3600
    if wanted.by_s < MIN_STEP_S:
        raise InvalidValue(
            "extend_by_s",
            f"A lease is extended automatically by at least {MIN_STEP_S} s at a time.",
            fix=f"Set extend_by_s to {MIN_STEP_S} or more, or set it and extend_limit_s to 0.",
        )
    if not max_duration_s + MIN_EXTENSION_S <= wanted.limit_s <= longest_s:
        raise InvalidValue(
            "extend_limit_s",
            f"The limit of automatic extension is a total duration: longer than the lease ({max_duration_s} s) and at"
            f" most {settings.MAX_LEASE_HOURS} h.",
            fix="Choose a total duration between them.",
        )
    if end_date is not None:
        raise InvalidValue(
            "extend_by_s",
            "A lease with a fixed end date is not extended automatically.",
            fix="Leave out the end date or the automatic extension.",
        )
