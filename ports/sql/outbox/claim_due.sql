UPDATE ports_outboxmessage SET claimed_until = %(until)s WHERE id IN (
  SELECT id FROM ports_outboxmessage WHERE at <= %(now)s AND (claimed_until IS NULL OR claimed_until < %(now)s)
   ORDER BY (task = ANY(%(urgent)s)) DESC, at, id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING at, id, task, subject, tenant_id, request_id
