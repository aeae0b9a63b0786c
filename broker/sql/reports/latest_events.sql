-- The newest event of each tenant that events_after.sql would show.
SELECT wanted.tenant_id, newest.xid, newest.position
  FROM unnest(%(tenants)s::text[]) AS wanted (tenant_id)
 CROSS JOIN LATERAL (
       SELECT xid, position FROM broker_transition
        WHERE broker_transition.tenant_id = wanted.tenant_id
          AND CASE WHEN xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint THEN true ELSE xid < (
                SELECT coalesce(min(open.xid::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
                  FROM pg_snapshot_xip(pg_current_snapshot()) AS open (xid)
                 WHERE NOT EXISTS (
                       SELECT FROM pg_locks held JOIN pg_stat_activity holder ON holder.pid = held.pid
                        WHERE held.locktype = 'transactionid' AND held.mode = 'ExclusiveLock' AND held.granted
                          AND held.transactionid = open.xid::xid
                          AND holder.datid <> (SELECT oid FROM pg_database WHERE datname = current_database()))) END
        ORDER BY xid DESC, position DESC LIMIT 1) AS newest
