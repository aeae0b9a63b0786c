-- Bring a tenant's draft invoices up to its charges: a line for every project, offering and price version,
-- rounded once, halves away from zero, in integers. Charges are only ever added, so lines keep their numbers.
WITH carried AS (
  SELECT i.id AS invoice_id, c.lease_id, c.project_id, c.offering_id, c.price_version_id, c.unit_seconds, c.exact_num
    FROM billing_invoice i
    JOIN billing_ratedcharge c ON c.period_id = i.period_id AND c.billed_period_id = c.period_id
   WHERE i.tenant_id = %(tenant)s AND i.status = 'draft'
   UNION ALL  -- late seconds of a month that is closed
  SELECT i.id, c.lease_id, c.project_id, c.offering_id, c.price_version_id, c.unit_seconds, c.exact_num
    FROM billing_invoice i
    JOIN billing_ratedcharge c ON c.billed_period_id = i.period_id AND c.billed_period_id <> c.period_id
   WHERE i.tenant_id = %(tenant)s AND i.status = 'draft'
), summed AS (
  SELECT invoice_id, project_id, offering_id, price_version_id, count(DISTINCT lease_id) AS leases,
         sum(unit_seconds)::bigint AS unit_seconds, sum(exact_num) AS exact_num
    FROM carried
   GROUP BY invoice_id, project_id, offering_id, price_version_id
), rounded AS (
  SELECT summed.*, (sign(exact_num)
           * div(2 * abs(exact_num) * %(scale)s + %(per_unit)s, 2 * %(per_unit)s::numeric))::bigint AS minor
    FROM summed
), numbered AS (
  SELECT rounded.*,
         coalesce(l.n, (SELECT coalesce(max(n), 0) FROM billing_invoiceline k WHERE k.invoice_id = rounded.invoice_id)
                       + row_number() OVER (PARTITION BY rounded.invoice_id, l.n IS NULL
                                                ORDER BY rounded.project_id, rounded.offering_id,
                                                         rounded.price_version_id)) AS n
    FROM rounded
    LEFT JOIN billing_invoiceline l USING (invoice_id, project_id, offering_id, price_version_id)
), written AS (
  INSERT INTO billing_invoiceline AS l
         (tenant_id, invoice_id, n, project_id, offering_id, price_version_id, leases, unit_seconds, exact_num, minor)
  SELECT %(tenant)s, invoice_id, n, project_id, offering_id, price_version_id, leases, unit_seconds, exact_num, minor
    FROM numbered
      ON CONFLICT (invoice_id, project_id, offering_id, price_version_id) DO UPDATE
     SET leases = excluded.leases, unit_seconds = excluded.unit_seconds, exact_num = excluded.exact_num,
         minor = excluded.minor
   WHERE (l.leases, l.exact_num) IS DISTINCT FROM (excluded.leases, excluded.exact_num)
  RETURNING 1
), totalled AS (
  UPDATE billing_invoice i SET total = t.total, refreshed_at = %(now)s
    FROM (SELECT invoice_id, sum(minor)::bigint AS total FROM rounded GROUP BY invoice_id) t
   WHERE i.id = t.invoice_id
)
SELECT count(*) FROM written
