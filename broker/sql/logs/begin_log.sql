-- Have the log of a lease collected from now on; it may have one from an earlier placement.
INSERT INTO broker_leaselog (lease_id, tenant_id, due_at, first_line, next_line, size_bytes, generation, cursor,
                             transition_seq, fault, quiet_reads, claims)
VALUES (%(lease)s, %(tenant)s, %(due_at)s, 1, 1, 0, 0, '{}', -1, '', 0, 0)
ON CONFLICT (lease_id) DO UPDATE SET due_at = excluded.due_at, quiet_reads = 0, completed_at = NULL
