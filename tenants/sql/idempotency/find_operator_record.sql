-- As find_record.sql, of an operator.
SELECT lock.got, a.body_digest, a.status, a.headers, a.body
  FROM (SELECT pg_try_advisory_xact_lock(%s) AS got) lock
  LEFT JOIN tenants_operatoridempotencyrecord a
    ON a.bearer = %s AND a.method = %s AND a.path = %s AND a.key = %s
