-- Every request that changes something runs it: the ORM takes twice as long.
INSERT INTO tenants_auditevent (id, tenant_id, at, actor_kind, actor_id, actor_label, action,
                                subject_id, subject_label, detail, request_id)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
