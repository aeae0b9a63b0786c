-- Sum the tax of invoices and credit notes by month, treatment, country, rate, currency and customer. An invoice counts
-- in the month of its supply, a credit note in the month it was issued.
WITH billed AS (
  SELECT p.label AS month, i.id, i.tenant_id, i.treatment, i.customer, i.supplier, i.currency, t.category, t.rate_bp,
         t.net, t.tax, 1 AS invoices, 0 AS notes
    FROM billing_invoicetax t
    JOIN billing_invoice i ON i.id = t.invoice_id
    JOIN billing_billingperiod p ON p.id = i.period_id
   WHERE i.number IS NOT NULL AND p.label >= %(first)s AND p.label <= %(last)s
   UNION ALL
  SELECT to_char(r.issued_at AT TIME ZONE p.time_zone, 'YYYY-MM'), i.id, i.tenant_id, i.treatment, i.customer,
         i.supplier, i.currency, l.tax_category, t.rate_bp, -sum(k.minor)::bigint, -sum(k.tax_minor)::bigint, 0,
         count(DISTINCT r.id)::int
    FROM billing_creditnoteline k
    JOIN billing_creditnote r ON r.id = k.credit_note_id
    JOIN billing_invoiceline l ON l.id = k.line_id
    JOIN billing_invoice i ON i.id = r.invoice_id
    JOIN billing_billingperiod p ON p.id = i.period_id
    LEFT JOIN billing_invoicetax t ON t.invoice_id = i.id AND t.category = l.tax_category
   WHERE to_char(r.issued_at AT TIME ZONE p.time_zone, 'YYYY-MM') BETWEEN %(first)s AND %(last)s
   GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
)
SELECT b.month, b.treatment,
       CASE WHEN b.treatment = 'domestic' THEN coalesce(b.supplier ->> 'country', '')
            ELSE coalesce(b.customer ->> 'country', '') END,
       b.category, b.rate_bp, b.currency, b.tenant_id, n.name, coalesce(b.customer ->> 'vat_id', ''),
       sum(b.net)::bigint, sum(b.tax)::bigint, sum(b.invoices)::int, sum(b.notes)::int
  FROM billed b
  JOIN tenants_tenant n ON n.id = b.tenant_id
 WHERE (%(tenant)s = '' OR b.tenant_id = %(tenant)s) AND b.treatment <> ''
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
 ORDER BY 1, 2, 3, 4, 5, 6, 8, 7
