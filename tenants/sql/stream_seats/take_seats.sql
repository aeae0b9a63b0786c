-- Record how many streams of a tenant a process has, unless that and those of other live processes exceed the limit.
INSERT INTO stream_seats AS s (process_id, tenant_id, seats)
SELECT %(process)s, %(tenant)s, %(seats)s
 WHERE %(seats)s + (
   SELECT coalesce(sum(o.seats), 0)
     FROM stream_seats o
     JOIN stream_process p ON p.id = o.process_id
    WHERE o.tenant_id = %(tenant)s AND o.process_id <> %(process)s AND p.alive_until > %(now)s
 ) <= %(limit)s
    ON CONFLICT (tenant_id, process_id) DO UPDATE SET seats = excluded.seats
RETURNING seats
