-- NOTIFY is delivered at commit, so a rolled-back message wakes nobody.
WITH inserted AS (
  INSERT INTO ports_outboxmessage (task, subject, tenant_id, at, request_id) VALUES (%s, %s, %s, %s, %s)
)
SELECT pg_notify(%s, '')
