-- Store what was read of a log, in one statement, if nobody claimed or stored it since: its row, and the first lines
-- in its newest chunk or in a new one.
WITH log AS (
  UPDATE broker_leaselog
     SET generation = %(generation)s, cursor = %(cursor)s, transition_seq = %(transition_seq)s, fault = %(fault)s,
         due_at = %(due_at)s::timestamptz, completed_at = %(completed_at)s::timestamptz,
         quiet_reads = %(quiet_reads)s, claimed_until = NULL, claims = claims + 1,
         next_line = next_line + %(all_lines)s, size_bytes = size_bytes + %(all_bytes)s
   WHERE lease_id = %(lease)s AND claims = %(claims)s
  RETURNING lease_id, tenant_id
), newest AS (
  SELECT lease_id, chunk.first_line
    FROM log JOIN broker_leaselogchunk chunk USING (lease_id)
   WHERE %(lines)s::integer > 0
   ORDER BY chunk.first_line DESC LIMIT 1
), grown AS (
  UPDATE broker_leaselogchunk chunk
     SET body = chunk.body || %(body)s::text, line_count = chunk.line_count + %(lines)s,
         size_bytes = chunk.size_bytes + %(bytes)s
    FROM newest
   WHERE chunk.lease_id = newest.lease_id AND chunk.first_line = newest.first_line
     AND chunk.size_bytes + %(bytes)s <= %(chunk_bytes)s
  RETURNING chunk.first_line
), added AS (
  INSERT INTO broker_leaselogchunk (tenant_id, lease_id, first_line, line_count, size_bytes, body)
  SELECT tenant_id, lease_id, %(first_line)s, %(lines)s, %(bytes)s, %(body)s
    FROM log
   WHERE %(lines)s::integer > 0 AND NOT EXISTS (SELECT FROM grown)
)
SELECT FROM log
