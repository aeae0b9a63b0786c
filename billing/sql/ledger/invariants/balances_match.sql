SELECT tenant_id FROM (
       SELECT tenant_id, currency, total - reduced_due - to_grants AS minor FROM billing_creditnote
        UNION ALL
       SELECT tenant_id, currency, minor FROM billing_topup WHERE status = 'succeeded'
        UNION ALL
       SELECT d.tenant_id, i.currency, -d.minor
         FROM billing_balancedraw d JOIN billing_invoice i ON i.id = d.invoice_id
        UNION ALL
       SELECT r.tenant_id, r.currency, r.minor - coalesce((
              SELECT sum(p.minor) FROM billing_bankreceiptpart p WHERE p.receipt_id = r.id), 0)
         FROM billing_bankreceipt r WHERE r.reversed_at IS NULL
        UNION ALL
       SELECT tenant_id, currency, -minor FROM billing_refund
        WHERE status <> 'declined' AND returned_at IS NULL
        UNION ALL
       SELECT a.tenant_id, a.currency, -b.minor
         FROM billing_ledgeraccount a JOIN billing_accountbalance b ON b.account_id = a.id
        WHERE a.type = 'wallet_paid') moved
 GROUP BY tenant_id, currency HAVING sum(minor) <> 0
