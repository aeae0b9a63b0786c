SELECT q.id FROM tenants_quota q
  LEFT JOIN (tenants_project p JOIN broker_lease l ON l.project_id = p.id AND l.state <> 'released')
    ON q.project_id = ANY(p.path)
 WHERE q.kind NOT IN ('gpu_seconds', 'storage') GROUP BY q.id
HAVING q.used <> coalesce(sum((l.quota_uses -> q.kind ->> 'amount')::bigint), 0)
 UNION ALL
SELECT q.id FROM tenants_quota q JOIN (
         SELECT part->>0 AS quota, (part->>2)::timestamptz AS counted_in, sum((part->>1)::bigint) AS taken
           FROM broker_lease l, jsonb_array_elements(l.quota_uses->'gpu_seconds'->'parts') part
          WHERE l.state <> 'released' GROUP BY 1, 2) h
    ON h.quota = q.id AND h.counted_in = q.window_start
 WHERE q.kind = 'gpu_seconds' AND q.used < h.taken
 UNION ALL
SELECT q.id FROM tenants_quota q
  LEFT JOIN (tenants_project p JOIN broker_volume v ON v.project_id = p.id AND v.state <> 'deleted')
    ON q.project_id = ANY(p.path)
 WHERE q.kind = 'storage' GROUP BY q.id HAVING q.used <> coalesce(sum(v.size_gib), 0)
