WITH inserted AS (
  INSERT INTO ports_outboxmessage (task, subject, tenant_id, at, request_id)
  SELECT %s, subject, %s, %s, %s FROM unnest(%s::text[]) AS subject
)
SELECT pg_notify(%s, '')
