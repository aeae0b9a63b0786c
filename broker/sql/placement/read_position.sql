-- The current snapshot, the caller's own transaction, and the database it belongs to.
SELECT 'now' AS kind, concat_ws(' ', pg_current_snapshot(), pg_current_xact_id_if_assigned()::text::bigint) AS what,
       false AS own
UNION ALL
SELECT 'books', concat_ws(' ', (SELECT oid FROM pg_database WHERE datname = current_database()),
                          pg_postmaster_start_time()), false
