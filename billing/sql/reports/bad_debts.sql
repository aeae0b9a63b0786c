-- List what write-offs, their undoing and money received since changed of invoices by month, before tax and tax, as the
-- ledger has it. Write-offs of releases that did not correct the tax are left out.
WITH moved AS (
  SELECT t.ref, t.at, (d.type = 'tax_payable' OR c.type = 'tax_payable') AS taxed,
         CASE WHEN c.type = 'receivable' THEN -t.minor ELSE t.minor END AS minor
    FROM billing_ledgertransfer t
    JOIN billing_ledgeraccount d ON d.id = t.debit_account_id
    JOIN billing_ledgeraccount c ON c.id = t.credit_account_id
   WHERE t.kind IN ('write_off', 'receipt', 'reversal')
     AND 'receivable' IN (d.type, c.type) AND (d.type IN ('bad_debt', 'tax_payable') OR c.type IN ('bad_debt', 'tax_payable'))
)
SELECT to_char(m.at AT TIME ZONE p.time_zone, 'YYYY-MM') AS month, i.id, i.treatment,
       CASE WHEN i.treatment = 'domestic' THEN coalesce(i.supplier ->> 'country', '')
            ELSE coalesce(i.customer ->> 'country', '') END,
       i.currency, i.tenant_id, n.name, coalesce(i.customer ->> 'vat_id', ''),
       coalesce(sum(m.minor) FILTER (WHERE NOT m.taxed), 0)::bigint, coalesce(sum(m.minor) FILTER (WHERE m.taxed), 0)::bigint
  FROM moved m
  JOIN billing_invoice i ON i.id = m.ref
  JOIN billing_billingperiod p ON p.id = i.period_id
  JOIN tenants_tenant n ON n.id = i.tenant_id
 WHERE to_char(m.at AT TIME ZONE p.time_zone, 'YYYY-MM') BETWEEN %(first)s AND %(last)s
   AND i.treatment <> '' AND (%(tenant)s = '' OR i.tenant_id = %(tenant)s)
   AND (i.tax = 0 OR EXISTS (SELECT FROM billing_writeoff w WHERE w.invoice_id = i.id AND w.tax > 0))
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
 ORDER BY 1, 2
