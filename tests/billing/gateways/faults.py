"""Faults of the simulated payment gateway, queued for the next charges of a payer."""

from django.db import connection
from django.db.backends.postgresql.psycopg_any import Jsonb

from billing.gateways.simulated import GatewayFault

SET_FAULTS = """
INSERT INTO billing_simulatedpayer (payer, pending_faults) VALUES (%s, %s)
ON CONFLICT (payer) DO UPDATE SET pending_faults = excluded.pending_faults
"""


def inject_faults(payer: str, *ills: GatewayFault) -> None:
    """Queue faults for the next charges of a payer, in order; none clears them."""
    with connection.cursor() as cursor:
        cursor.execute(SET_FAULTS, [payer, Jsonb([ill.value for ill in ills])])
