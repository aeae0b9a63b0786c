-- One round trip locks and reads. The lock may be acquired just after another request committed, later than
-- this statement's snapshot: then nothing is found here, and the unique constraint refuses a second record.
SELECT lock.got, a.body_digest, a.status, a.headers, a.body
  FROM (SELECT pg_try_advisory_xact_lock(%s) AS got) lock
  LEFT JOIN tenants_idempotencyrecord a
    ON a.tenant_id = %s AND a.bearer = %s AND a.method = %s AND a.path = %s AND a.key = %s
