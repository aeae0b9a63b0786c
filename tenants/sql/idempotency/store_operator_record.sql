INSERT INTO tenants_operatoridempotencyrecord (bearer, method, path, key, body_digest, status, headers, body, at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
