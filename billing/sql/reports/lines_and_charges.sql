-- Compare invoice lines with their charges, adjustments included: exact amounts by month, then the one rounding of
-- every line.
WITH charged AS (
  SELECT period_id, sum(exact) AS exact
    FROM (SELECT billed_period_id AS period_id, sum(exact_num) AS exact FROM billing_ratedcharge GROUP BY 1
           UNION ALL  -- adjustments are written when a month closes, anew if it was opened again
          SELECT m.billed_period_id, sum(m.exact_num)
            FROM billing_invoiceadjustment m
            JOIN billing_invoice i ON i.period_id = m.billed_period_id AND i.revision = m.revision
                                  AND i.status NOT IN ('draft', 'void')
           GROUP BY 1) every
   GROUP BY 1
), invoiced AS (
  SELECT i.period_id, sum(l.exact_num - CASE WHEN i.status = 'draft' THEN l.month_num ELSE 0 END) AS exact
    FROM billing_invoice i
    JOIN billing_invoiceline l ON l.invoice_id = i.id
   WHERE i.status <> 'void'
   GROUP BY 1
), rounding AS (
  SELECT count(*) AS wrong
    FROM billing_invoiceline l
    JOIN billing_invoice i ON i.id = l.invoice_id
    JOIN unnest(%(currencies)s::text[], %(scales)s::numeric[]) AS known(currency, scale) USING (currency)
   WHERE l.minor <> sign(l.exact_num)
                    * div(2 * abs(l.exact_num) * known.scale + %(per_unit)s, 2 * %(per_unit)s::numeric)
), totals AS (
  SELECT count(*) AS wrong
    FROM billing_invoice i
   WHERE i.total <> (SELECT coalesce(sum(l.minor + l.tax_minor), 0) FROM billing_invoiceline l WHERE l.invoice_id = i.id)
)
SELECT coalesce(sum(abs(coalesce(invoiced.exact, 0) - coalesce(charged.exact, 0))), 0)::numeric(38),
       (SELECT wrong FROM rounding)::bigint, (SELECT wrong FROM totals)::bigint
  FROM charged
  FULL JOIN invoiced USING (period_id)
