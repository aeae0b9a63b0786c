-- List the transfers between a tenant and the platform in one currency: on its receivable and on its balance. Sealed
-- transfers are found through the tenant's seals, the newest by their time.
WITH since AS (
  SELECT coalesce((SELECT max(s.sealed_at) - interval '7 days' FROM billing_ledgerseal s WHERE s.tenant_id = %(tenant)s),
                  (SELECT min(a.opened_at) - interval '7 days' FROM billing_ledgeraccount a
                    WHERE a.tenant_id = %(tenant)s)) AS at
), known AS (
  SELECT unnest(s.transfers) AS id FROM billing_ledgerseal s WHERE s.tenant_id = %(tenant)s
   UNION
  SELECT t.id FROM billing_ledgertransfer t
   WHERE t.recorded_at >= (SELECT at FROM since) AND t.tenant_id = %(tenant)s
)
SELECT t.at, t.kind, t.ref, t.idem,
       CASE WHEN d.type = 'receivable' THEN t.minor WHEN c.type = 'receivable' THEN -t.minor ELSE 0 END,
       CASE WHEN c.type = 'wallet_paid' THEN t.minor WHEN d.type = 'wallet_paid' THEN -t.minor ELSE 0 END
  FROM known
  JOIN billing_ledgertransfer t ON t.id = known.id
  JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
  JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
 WHERE t.tenant_id = %(tenant)s AND t.currency = %(currency)s AND t.at < %(until)s
   AND (d.type IN ('receivable', 'wallet_paid') OR c.type IN ('receivable', 'wallet_paid'))
 ORDER BY t.at, t.kind <> 'invoice', t.idem
