-- Record how many streams of some tenants a process has now.
INSERT INTO stream_seats (process_id, tenant_id, seats)
SELECT %(process)s, held.tenant_id, held.seats
  FROM unnest(%(tenants)s::text[], %(seats)s::int[]) AS held (tenant_id, seats) ORDER BY held.tenant_id
    ON CONFLICT (tenant_id, process_id) DO UPDATE SET seats = excluded.seats
