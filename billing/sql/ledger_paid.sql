-- What a payment that succeeded is in the books: money came in, and the tenant owes that much less.
SELECT p.tenant_id, p.currency, p.settled_at, 'payment', p.invoice_id, NULL::bigint, 'cash', 'receivable', p.minor,
       (p.invoice_id || ':' || p.id) COLLATE "C"
  FROM billing_payment p
 WHERE p.id = ANY(%(subjects)s) AND p.status = 'succeeded'
