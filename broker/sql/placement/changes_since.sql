-- The position of this read (as in read_position.sql), and the ids written by transactions that began after the
-- last read, were still open then, or are the caller's own. Transaction ids in a restored copy of another server
-- lie in the future here, and are ignored.
SELECT 'now' AS kind, concat_ws(' ', pg_current_snapshot(), pg_current_xact_id_if_assigned()::text::bigint) AS what,
       false AS own
UNION ALL
SELECT 'books', concat_ws(' ', (SELECT oid FROM pg_database WHERE datname = current_database()),
                          pg_postmaster_start_time()), false
UNION ALL (SELECT 'gpu', gpu_id, false FROM broker_placechange
            WHERE xid >= %(upto)s::bigint AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            ORDER BY xid LIMIT %(most)s::int)
UNION ALL (SELECT 'gpu', gpu_id, coalesce(xid = pg_current_xact_id_if_assigned()::text::bigint, false)
             FROM broker_placechange
            WHERE xid = ANY(array_append(%(still_open)s::bigint[], pg_current_xact_id_if_assigned()::text::bigint)))
UNION ALL (SELECT 'gpu', id, false FROM broker_gpu
            WHERE xid >= %(upto)s::bigint AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            ORDER BY xid LIMIT %(most)s::int)
UNION ALL (SELECT 'gpu', id, coalesce(xid = pg_current_xact_id_if_assigned()::text::bigint, false)
             FROM broker_gpu
            WHERE xid = ANY(array_append(%(still_open)s::bigint[], pg_current_xact_id_if_assigned()::text::bigint)))
UNION ALL (SELECT 'node', id, false FROM broker_node
            WHERE xid >= %(upto)s::bigint AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            ORDER BY xid LIMIT %(most)s::int)
UNION ALL (SELECT 'node', id, coalesce(xid = pg_current_xact_id_if_assigned()::text::bigint, false)
             FROM broker_node
            WHERE xid = ANY(array_append(%(still_open)s::bigint[], pg_current_xact_id_if_assigned()::text::bigint)))
UNION ALL (SELECT 'cluster', id, false FROM broker_cluster
            WHERE xid >= %(upto)s::bigint AND xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            ORDER BY xid LIMIT %(most)s::int)
UNION ALL (SELECT 'cluster', id, coalesce(xid = pg_current_xact_id_if_assigned()::text::bigint, false)
             FROM broker_cluster
            WHERE xid = ANY(array_append(%(still_open)s::bigint[], pg_current_xact_id_if_assigned()::text::bigint)))
