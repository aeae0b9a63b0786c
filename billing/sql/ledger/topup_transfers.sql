-- Derive the transfer of a successful top-up: cash increases, and so does the tenant's balance.
WITH given AS (
  SELECT t.tenant_id, t.currency, t.settled_at, 'topup', t.id, NULL::bigint, 'cash', 'wallet_paid', t.minor,
         (t.id || ':cash') COLLATE "C"
    FROM billing_topup t
   WHERE t.id = ANY(%(subjects)s) AND t.status = 'succeeded'
)
