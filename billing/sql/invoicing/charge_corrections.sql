-- Write the charges of a correction to invoices of open months. The key contains the correction, so repeating it
-- writes nothing; parts of one interval are numbered. Use that should have cost something else is refunded at its old
-- price and charged again.
WITH part AS (
  SELECT p.*, c.nano_per_hour AS instead, extract(epoch FROM p.e - p.s)::bigint * p.quantity AS seconds, c.id AS correction
    FROM billing_correctedinterval p
    JOIN billing_tenantcorrection h ON h.id = p.share_id
    JOIN billing_correction c ON c.id = h.correction_id
   WHERE p.share_id = %(share)s AND NOT p.final
), charge AS (
  SELECT part.*, unit_seconds AS units, exact_num AS exact, 0 AS half FROM part WHERE instead IS NULL
   UNION ALL
  SELECT part.*, -seconds, -seconds::numeric * nano_per_hour, 1 FROM part WHERE instead IS NOT NULL
   UNION ALL
  SELECT part.*, seconds, seconds::numeric * instead, 2 FROM part WHERE instead IS NOT NULL
)
INSERT INTO billing_ratedcharge
       (lease_id, seq, price_version_id, period_id, meter, part, billed_period_id, tenant_id, project_id, offering_id,
        s, e, unit_seconds, exact_num, run_id, kind, correction_id)
SELECT lease_id, seq, price_version_id, period_id, 'slice_seconds',
       row_number() OVER (PARTITION BY lease_id, seq, price_version_id, period_id ORDER BY n, half) - 1,
       billed_period_id, tenant_id, project_id, offering_id, s, e, units, exact, %(run)s, 'adjust', correction
  FROM charge
    ON CONFLICT DO NOTHING
