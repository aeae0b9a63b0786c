"""Django's PostgreSQL backend with server-side binding and bigint parameters.

Values are bound by the server, so that a statement is planned once per connection. Django marks an integer
with its column's size, and psycopg then silently truncates what does not fit: an id of 2³¹ would find the
row 0. Here every integer travels as a bigint, and PostgreSQL refuses what its column cannot hold. Where a
function accepts only an int, cast (web/api/charge_pagination.py).
"""

from django.db.backends.postgresql import base, operations
from psycopg.types import numeric

from ports.postgres import sql_statements  # noqa: F401  # long lists are bound as one value from here on


class DatabaseOperations(operations.DatabaseOperations):
    """Operations that send integers of every column as bigints."""

    integerfield_type_map = dict.fromkeys(operations.DatabaseOperations.integerfield_type_map, numeric.Int8)


class DatabaseWrapper(base.DatabaseWrapper):
    """Connection of ENGINE = "ports.postgres"."""

    ops_class = DatabaseOperations
