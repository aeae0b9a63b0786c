-- Derive the transfer of a successful payment: cash increases, and the tenant owes that much less.
WITH given AS (
  SELECT p.tenant_id, p.currency, p.settled_at, 'payment', p.invoice_id, NULL::bigint, 'cash', 'receivable', p.minor,
         (p.invoice_id || ':' || p.id) COLLATE "C"
    FROM billing_payment p
   WHERE p.id = ANY(%(subjects)s) AND p.status = 'succeeded'
)
