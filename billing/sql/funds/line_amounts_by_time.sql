-- Compute the exact amount of each invoice line at some moments: its charges up to that second, less the same share of
-- the month's reductions of the line.
SELECT l.n, b.at,
       coalesce(div(sum(div(c.exact_num * floor(extract(epoch FROM least(c.e, b.at) - c.s)),
                            extract(epoch FROM c.e - c.s))) * l.exact_num, nullif(l.exact_num - l.month_num, 0)),
                0)::numeric(38)
  FROM billing_invoiceline l
  JOIN billing_ratedcharge c
    ON c.billed_period_id = %(period)s AND c.tenant_id = l.tenant_id
   AND (c.project_id, c.offering_id, c.price_version_id) = (l.project_id, l.offering_id, l.price_version_id)
 CROSS JOIN unnest(%(moments)s::timestamptz[]) b (at)
 WHERE l.invoice_id = %(invoice)s AND c.s < b.at AND c.e > c.s
 GROUP BY l.id, l.n, b.at, l.exact_num, l.month_num
