"""PostgreSQL's statistics of the tables that queries of offerings and leases read."""

from django.db import connection


def refresh_statistics() -> None:
    """Have PostgreSQL count the rows of leases anew.

    Its plans follow what it knew of an offering before.

    It does so by itself only after a tenth of a table has changed.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT refresh_lease_statistics()")
