-- Derive the transfers of a refund that failed or was returned: the reverse of those of its request.
WITH given AS (
  SELECT t.tenant_id, t.currency, coalesce(r.returned_at, r.settled_at), 'refund', t.ref, t.id, 'cash', 'wallet_paid', t.minor,
         (t.idem || ':back') COLLATE "C"
    FROM billing_refund r
    JOIN billing_payment p ON p.id = r.payment_id
    JOIN billing_ledgertransfer t ON t.idem = (p.invoice_id || ':' || r.id) COLLATE "C"
   WHERE r.id = ANY(%(subjects)s) AND (r.status = 'declined' OR r.returned_at IS NOT NULL)
)
