"""The story's money: everything charged, months that are over closed, the present one drafted."""

from datetime import datetime

from billing.services import rating


def close_and_draft(*, now: datetime) -> None:
    """Rate all usage up to now."""
    rating.rate(now=now)
