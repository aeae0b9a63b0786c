-- List what tenants owed for each invoice at a time, by the receivable account.
WITH moved AS (
  SELECT t.tenant_id, t.currency, t.ref, CASE WHEN d.type = 'receivable' THEN t.minor ELSE -t.minor END AS minor
    FROM billing_ledgertransfer t
    JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
    JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
   WHERE t.at < %(at)s AND (d.type = 'receivable') <> (c.type = 'receivable')
     AND (%(tenant)s = '' OR t.tenant_id = %(tenant)s)
), owed AS (
  SELECT tenant_id, currency, ref, sum(minor)::bigint AS minor FROM moved GROUP BY 1, 2, 3 HAVING sum(minor) <> 0
)
SELECT o.tenant_id, n.name, o.ref,
       i.series || '-' || lpad(i.number::text, greatest(4, length(i.number::text)), '0'),
       p.label, i.finalized_at, i.due_at, o.currency, i.total, o.minor
  FROM owed o
  JOIN tenants_tenant n ON n.id = o.tenant_id
  LEFT JOIN billing_invoice i ON i.id = o.ref
  LEFT JOIN billing_billingperiod p ON p.id = i.period_id
 ORDER BY n.name, o.tenant_id, i.due_at, o.ref
