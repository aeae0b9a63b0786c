"""Django's PostgreSQL backend with values bound by the server, so that a statement is planned once a connection.

Django marks an integer with its column's size, and psycopg then cuts off, without a word, what does not fit: an
id of 2³¹ would find the row 0. Every integer travels as a bigint instead, and PostgreSQL refuses what its column
cannot hold. Where a function takes nothing but an int, cast (billing/api/pages.py).
"""

from django.db.backends.postgresql import base, operations
from psycopg.types import numeric

from ports.postgresql import lists  # noqa: F401  # long lists are bound as one value from here on


class DatabaseOperations(operations.DatabaseOperations):
    """Writes integers of every column as bigints."""

    integerfield_type_map = dict.fromkeys(operations.DatabaseOperations.integerfield_type_map, numeric.Int8)


class DatabaseWrapper(base.DatabaseWrapper):
    """What ENGINE = "ports.postgresql" in the settings opens."""

    ops_class = DatabaseOperations
