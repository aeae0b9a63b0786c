-- Open the hold of a lease or read it again: its id, until when a wallet covers it, and whether it is new.
INSERT INTO billing_hold (tenant_id, id, lease_id, currency, opened_at, checked_at, seq)
VALUES (%(tenant)s, %(id)s, %(lease)s, %(currency)s, %(now)s, %(now)s, %(seq)s)
    ON CONFLICT (lease_id) DO UPDATE
   SET checked_at = excluded.checked_at, seq = excluded.seq, settled_at = NULL
RETURNING id, covers_until, xmax = 0
