"""What must be true of charges, asked of the rows themselves. Must run as staff."""

from datetime import datetime

from broker.services import proofs as capacity
from broker.services.proofs import Claim, Proof

# Rating runs every half minute; a lease that ended longer ago than this has its charges.
RATED_AFTER_S = 120

CLAIMS = (
    Claim(
        "charged is active",
        "Every lease that ended is charged for exactly the seconds it was active.",
        f"""
        SELECT l.id FROM {capacity.RECENT} l
          LEFT JOIN LATERAL (
               SELECT sum(extract(epoch FROM n.at - t.at) * t.quantity) AS seconds
                 FROM broker_transition t JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
                WHERE t.lease_id = l.id AND t.after = 'active') used ON true
          LEFT JOIN LATERAL (
               SELECT sum(c.unit_seconds) AS seconds FROM billing_ratedcharge c WHERE c.lease_id = l.id) charged ON true
         WHERE l.ended_at < %(now)s::timestamptz - interval '{RATED_AFTER_S} s'
           AND coalesce(used.seconds, 0) <> coalesce(charged.seconds, 0)
        """,
    ),
    Claim(
        "no charge without use",
        "Every charge lies inside a stretch of the ledger in which its lease was active.",
        f"""
        SELECT c.lease_id || '#' || c.seq FROM {capacity.RECENT} l JOIN billing_ratedcharge c ON c.lease_id = l.id
          LEFT JOIN broker_transition t ON t.lease_id = c.lease_id AND t.seq = c.seq
          LEFT JOIN broker_transition n ON n.lease_id = c.lease_id AND n.seq = c.seq + 1
         WHERE t.after IS DISTINCT FROM 'active' OR c.s < t.at OR c.e > n.at OR n.at IS NULL
        """,
    ),
    Claim(
        "nothing runs unpriced",
        "Every active lease has a price this second.",
        """
        SELECT l.id FROM broker_lease l JOIN tenants_tenant tn ON tn.id = l.tenant_id
         WHERE l.state = 'active' AND NOT EXISTS (
               SELECT FROM billing_priceversion p WHERE p.offering_id = l.offering_id
                  AND p.currency = tn.currency AND p.valid @> %(now)s::timestamptz)
        """,
    ),
)


def check(*, now: datetime) -> list[Proof]:
    """Look at every claim there is, the fleet's first; one query."""
    return capacity.check((*capacity.CLAIMS, *CLAIMS), now=now)
