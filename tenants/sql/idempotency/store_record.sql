INSERT INTO tenants_idempotencyrecord (tenant_id, bearer, method, path, key, body_digest, status, headers, body, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
