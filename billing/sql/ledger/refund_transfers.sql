-- Derive the transfer of a refund to a payment card: the tenant's balance decreases when it is requested.
WITH given AS (
  SELECT r.tenant_id, r.currency, r.opened_at, 'refund', p.invoice_id, NULL::bigint, 'wallet_paid', 'cash', r.minor,
         (p.invoice_id || ':' || r.id) COLLATE "C"
    FROM billing_refund r JOIN billing_payment p ON p.id = r.payment_id
   WHERE r.id = ANY(%(subjects)s)
)
