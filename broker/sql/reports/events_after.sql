-- Events are held back that are younger than the oldest transaction open in this database; another database of the
-- server may keep one open for hours. One that ended after our snapshot was taken holds no lock and counts as open:
-- its rows are not in the snapshot. CASE reads the locks only for rows that may be held back, not in an idle poll.
SELECT t.xid, t.position, t.at, t.recorded_at, t.lease_id, l.name, t.seq, t.generation, t.project_id,
       t.offering_id, t.before, t.after, t.reason, t.cause,
       CASE t.actor_kind WHEN 'staff' THEN 'an operator' ELSE t.actor_label END
  FROM broker_transition t JOIN broker_lease l ON l.id = t.lease_id
 WHERE t.tenant_id = %(tenant)s AND (t.xid, t.position) > (%(xid)s, %(position)s)
   AND CASE WHEN xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint THEN true ELSE xid < (
         SELECT coalesce(min(open.xid::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
           FROM pg_snapshot_xip(pg_current_snapshot()) AS open (xid)
          WHERE NOT EXISTS (
                SELECT FROM pg_locks held JOIN pg_stat_activity holder ON holder.pid = held.pid
                 WHERE held.locktype = 'transactionid' AND held.mode = 'ExclusiveLock' AND held.granted
                   AND held.transactionid = open.xid::xid
                   AND holder.datid <> (SELECT oid FROM pg_database WHERE datname = current_database()))) END
   AND (%(within)s::text[] IS NULL OR t.project_id IN (
        SELECT id FROM tenants_project WHERE path::text[] && %(within)s::text[]))
 ORDER BY t.xid, t.position LIMIT %(limit)s
