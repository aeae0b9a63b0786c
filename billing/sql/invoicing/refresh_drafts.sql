-- Update tenants' draft invoices from their charges: one line for every project, offering and price version, rounded
-- once, halves away from zero, in integers. Charges are only ever added, so lines keep their numbers. An adjustment of
-- the month (`carried`) is joined to the line that it reduces, or is a line of its own. Tax is rounded once for each
-- category, by the rate of the month's last day, and shared exactly among its lines: each share is rounded down, and
-- the largest remainders get one more.
WITH drafts AS MATERIALIZED (  -- tenants and their tax; only a LEFT JOIN makes the planner expect many rows
  SELECT i.id AS invoice_id, i.period_id, s.tenant AS tenant_id, s.treatment, s.jurisdiction, s.untaxed, s.scale,
         coalesce((SELECT max(l.n) FROM billing_invoiceline l WHERE l.invoice_id = i.id), 0) AS lines
    FROM jsonb_to_recordset(%(tenants)s::jsonb)
         AS s (tenant text, treatment text, jurisdiction text, untaxed boolean, scale numeric)
    LEFT JOIN billing_invoice i ON i.tenant_id = s.tenant AND i.status = 'draft'
), carried AS (
  SELECT i.invoice_id, c.lease_id, c.project_id, c.offering_id, c.price_version_id, c.unit_seconds, c.exact_num,
         CASE WHEN c.correction_id = '' THEN c.kind ELSE 'corrected' END AS kind, 0::numeric AS month_num, 'usage'::text AS line_kind
    FROM drafts i
    JOIN billing_ratedcharge c ON c.period_id = i.period_id AND c.billed_period_id = c.period_id
   UNION ALL  -- late seconds of a month that is closed
  SELECT i.invoice_id, c.lease_id, c.project_id, c.offering_id, c.price_version_id, c.unit_seconds, c.exact_num,
         CASE WHEN c.correction_id = '' THEN c.kind ELSE 'corrected' END, 0, 'usage'
    FROM drafts i
    JOIN billing_ratedcharge c ON c.billed_period_id = i.period_id AND c.billed_period_id <> c.period_id
   UNION ALL  -- adjustments of the month
  SELECT m.invoice, NULL, m.project, m.offering, m.price, 0, m.num, 'month', m.num, m.kind
    FROM jsonb_to_recordset(%(carried)s::jsonb)
         AS m (invoice text, kind text, project text, offering text, price bigint, num numeric)
), summed AS (
  SELECT invoice_id, project_id, offering_id, price_version_id, count(DISTINCT lease_id) AS leases,
         sum(unit_seconds)::bigint AS unit_seconds, sum(exact_num) AS exact_num,
         coalesce(-sum(unit_seconds) FILTER (WHERE kind = 'adjust'), 0)::bigint AS given_back_s,
         sum(month_num) AS month_num, line_kind
    FROM carried
   GROUP BY invoice_id, project_id, offering_id, price_version_id, line_kind
), rounded AS (
  SELECT summed.*, drafts.lines, (sign(exact_num)
           * div(2 * abs(exact_num) * drafts.scale + %(per_unit)s, 2 * %(per_unit)s::numeric))::bigint AS minor
    FROM summed JOIN drafts USING (invoice_id)
), numbered AS (
  SELECT rounded.*, coalesce(t.category, 'standard') AS tax_category,
         coalesce(l.n, rounded.lines + row_number() OVER (PARTITION BY rounded.invoice_id, l.n IS NULL
                                                              ORDER BY rounded.line_kind <> 'usage', rounded.project_id,
                                                                       rounded.offering_id, rounded.price_version_id)) AS n
    FROM rounded
    LEFT JOIN billing_invoiceline l USING (invoice_id, project_id, offering_id, price_version_id)
    LEFT JOIN billing_offeringtaxcategory t USING (offering_id)
), nets AS MATERIALIZED (  -- computed once, even if the planner expects few drafts
  SELECT invoice_id, tax_category, sum(minor) AS net FROM numbered GROUP BY invoice_id, tax_category
), categories AS (
  SELECT c.*, i.tenant_id, i.treatment, r.id AS rate_id, CASE WHEN i.untaxed THEN 0 ELSE r.rate_bp END AS rate_bp
    FROM nets c
    JOIN drafts i USING (invoice_id)
    JOIN billing_billingperiod p ON p.id = i.period_id
    LEFT JOIN billing_taxrate r
           ON r.jurisdiction = i.jurisdiction AND r.category = c.tax_category
          AND r.valid @> ((p.label || '-01')::date + interval '1 month' - interval '1 day')::date
), taxed AS (
  SELECT c.*, coalesce(sign(c.net) * div(2 * abs(c.net) * c.rate_bp + 10000, 20000), 0)::bigint AS tax
    FROM categories c
), cut AS (
  SELECT n.*, t.tenant_id, t.tax, floor(x.full_tax) AS down,
         row_number() OVER (PARTITION BY n.invoice_id, n.tax_category ORDER BY x.full_tax - floor(x.full_tax) DESC, n.n) AS nth
    FROM numbered n
    JOIN taxed t USING (invoice_id, tax_category)
   CROSS JOIN LATERAL (SELECT n.minor * coalesce(t.rate_bp, 0) * 0.0001 AS full_tax) x
), shared AS (
  SELECT cut.*, (down + CASE WHEN nth <= tax - sum(down) OVER (PARTITION BY invoice_id, tax_category) THEN 1 ELSE 0 END
                )::bigint AS tax_minor
    FROM cut
), written AS (
  INSERT INTO billing_invoiceline AS l
         (tenant_id, invoice_id, n, project_id, offering_id, price_version_id, leases, unit_seconds, exact_num, minor,
          tax_category, tax_minor, given_back_s, month_num, kind)
  SELECT tenant_id, invoice_id, n, project_id, offering_id, price_version_id, leases, unit_seconds, exact_num, minor,
         tax_category, tax_minor, given_back_s, month_num, line_kind
    FROM shared
      ON CONFLICT (invoice_id, project_id, offering_id, price_version_id) DO UPDATE
     SET leases = excluded.leases, unit_seconds = excluded.unit_seconds, exact_num = excluded.exact_num,
         minor = excluded.minor, tax_category = excluded.tax_category, tax_minor = excluded.tax_minor,
         given_back_s = excluded.given_back_s, month_num = excluded.month_num
   WHERE (l.leases, l.exact_num, l.unit_seconds, l.given_back_s, l.month_num, l.tax_category, l.tax_minor)
         IS DISTINCT FROM (excluded.leases, excluded.exact_num, excluded.unit_seconds, excluded.given_back_s,
                           excluded.month_num, excluded.tax_category, excluded.tax_minor)
  RETURNING 1
), kept AS (
  INSERT INTO billing_invoicetax AS t (tenant_id, invoice_id, category, rate_id, rate_bp, net, tax)
  SELECT tenant_id, invoice_id, tax_category, rate_id, rate_bp, net, tax
    FROM taxed
   WHERE treatment <> '' OR EXISTS (SELECT FROM billing_invoicetax k WHERE k.invoice_id = taxed.invoice_id)
      ON CONFLICT (invoice_id, category) DO UPDATE
     SET rate_id = excluded.rate_id, rate_bp = excluded.rate_bp, net = excluded.net, tax = excluded.tax
   WHERE (t.rate_id, t.rate_bp, t.net, t.tax)
         IS DISTINCT FROM (excluded.rate_id, excluded.rate_bp, excluded.net, excluded.tax)
), untold AS (  -- an offering may have changed its tax category since
  DELETE FROM billing_invoicetax t
   USING drafts i
   WHERE i.invoice_id = t.invoice_id
     AND NOT EXISTS (SELECT FROM taxed x WHERE x.invoice_id = t.invoice_id AND x.tax_category = t.category)
), totalled AS (
  UPDATE billing_invoice i
     SET total = t.net + t.tax, tax = t.tax, treatment = t.treatment, refreshed_at = %(now)s
    FROM (SELECT invoice_id, treatment, sum(net)::bigint AS net, sum(tax)::bigint AS tax
            FROM taxed GROUP BY invoice_id, treatment) t
   WHERE i.id = t.invoice_id
)
SELECT count(*) FROM written
