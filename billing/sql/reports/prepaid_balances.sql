-- Sum what was owed to tenants at a time: paid balances and granted credit that were not used.
SELECT t.tenant_id, n.name, t.currency,
       sum(CASE WHEN c.type = 'wallet_paid' THEN t.minor WHEN d.type = 'wallet_paid' THEN -t.minor ELSE 0 END)::bigint,
       sum(CASE WHEN c.type = 'wallet_promo' THEN t.minor WHEN d.type = 'wallet_promo' THEN -t.minor ELSE 0 END)::bigint
  FROM billing_ledgertransfer t
  JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
  JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
  JOIN tenants_tenant n ON n.id = t.tenant_id
 WHERE t.at < %(at)s AND (%(tenant)s = '' OR t.tenant_id = %(tenant)s)
   AND (d.type IN ('wallet_paid', 'wallet_promo') OR c.type IN ('wallet_paid', 'wallet_promo'))
 GROUP BY 1, 2, 3
HAVING sum(CASE WHEN c.type IN ('wallet_paid', 'wallet_promo') THEN t.minor ELSE 0 END
           - CASE WHEN d.type IN ('wallet_paid', 'wallet_promo') THEN t.minor ELSE 0 END) <> 0
 ORDER BY n.name, t.tenant_id, t.currency
