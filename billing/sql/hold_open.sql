-- Open the hold of a lease, or look at it once more: which it is, until when a wallet covers it, and whether it is new.
INSERT INTO billing_hold (tenant_id, id, lease_id, currency, opened_at, looked_at, seq)
VALUES (%(tenant)s, %(id)s, %(lease)s, %(currency)s, %(now)s, %(now)s, %(seq)s)
    ON CONFLICT (lease_id) DO UPDATE
   SET looked_at = excluded.looked_at, seq = excluded.seq, settled_at = NULL
RETURNING id, covers_until, xmax = 0
