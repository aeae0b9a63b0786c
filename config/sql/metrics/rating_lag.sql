-- Age of the oldest end of active time that no rating run has certainly seen: written by a transaction that is not
-- older than those of its tenant's last run.
SELECT coalesce(extract(epoch FROM clock_timestamp() - min(waiting.since)), 0)::float
  FROM tenants_tenant n
  LEFT JOIN billing_ratingwatermark m ON m.tenant_id = n.id
 CROSS JOIN LATERAL (
       SELECT min(t.recorded_at) AS since FROM broker_transition t
        WHERE t.tenant_id = n.id AND t.before = 'active' AND t.xid >= coalesce(m.xid, 0)) waiting
