INSERT INTO tenants_auditevent (id, tenant_id, at, actor_kind, actor_id, actor_label, action,
                                subject_id, subject_label, detail, request_id)
SELECT e.id, e.tenant_id, %s, %s, %s, %s, %s, e.subject_id, e.subject_label, e.detail, %s
  FROM jsonb_to_recordset(%s) AS e (id text, tenant_id text, subject_id text, subject_label text, detail jsonb)
