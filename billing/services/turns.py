"""Whoever charges, closes a month or changes a price takes turns with all others who do."""

from django.db import connection

CHARGING = 7_012_026  # the advisory lock; without it two runs would also wait for each other's rows


def take() -> None:
    """Wait until nobody else charges, and keep the next one waiting until this transaction is over."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHARGING])
