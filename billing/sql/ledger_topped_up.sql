-- What a top-up that succeeded is in the books: money came in, and is owed to the tenant as service.
SELECT t.tenant_id, t.currency, t.settled_at, 'topup', t.id, NULL::bigint, 'cash', 'wallet_paid', t.minor,
       (t.id || ':cash') COLLATE "C"
  FROM billing_topup t
 WHERE t.id = ANY(%(subjects)s) AND t.status = 'succeeded'
