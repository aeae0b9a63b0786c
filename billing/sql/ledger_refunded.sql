-- What a refund to a card is in the books: so much less of the tenant's money is with us, from when it was asked for.
SELECT r.tenant_id, r.currency, r.opened_at, 'refund', p.invoice_id, NULL::bigint, 'wallet_paid', 'cash', r.minor,
       (p.invoice_id || ':' || r.id) COLLATE "C"
  FROM billing_refund r JOIN billing_payment p ON p.id = r.payment_id
 WHERE r.id = ANY(%(subjects)s)
