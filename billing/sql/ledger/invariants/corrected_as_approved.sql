SELECT h.correction_id || ' ' || h.tenant_id
  FROM billing_tenantcorrection h
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(c.unit_seconds), 0) AS seconds, coalesce(sum(c.exact_num), 0) AS exact
         FROM billing_ratedcharge c
        WHERE c.correction_id = h.correction_id AND c.tenant_id = h.tenant_id
          AND c.lease_id IN (
              SELECT p.lease_id FROM billing_correctedinterval p WHERE p.share_id = h.id)) charged
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(p.unit_seconds), 0) AS seconds, coalesce(sum(p.exact_num), 0) AS exact
         FROM billing_correctedinterval p WHERE p.share_id = h.id AND NOT p.final) approved
 WHERE h.status = 'booked' AND h.settled_at > %(now)s::timestamptz - interval '2 days'
   AND (charged.seconds, charged.exact) <> (approved.seconds, approved.exact)
 UNION ALL
SELECT c.correction_id || ' ' || c.lease_id
  FROM billing_ratedcharge c
 WHERE c.correction_id <> '' AND c.recorded_at > %(now)s::timestamptz - interval '2 days' AND NOT EXISTS (
       SELECT FROM billing_tenantcorrection h
         JOIN billing_correctedinterval p ON p.share_id = h.id AND NOT p.final
        WHERE h.correction_id = c.correction_id AND p.lease_id = c.lease_id AND (p.s, p.e) = (c.s, c.e))
