-- Read from the row, not from an earlier copy: a quota created meanwhile has added its part there. Used seconds count
-- against the oldest part first. Never below zero: the invariant checks report a wrong count, and it must not keep a
-- lease from releasing its GPU.
WITH parts AS (
  SELECT kind, part ->> 0 AS quota, (part ->> 1)::bigint AS amount, (part ->> 2)::timestamptz AS taken_in, number
    FROM broker_lease l, jsonb_each(l.quota_uses) AS u(kind, use),
         jsonb_array_elements(use -> 'parts') WITH ORDINALITY AS p(part, number)
   WHERE l.id = %(lease)s
), backs AS (
  SELECT quota, amount, NULL::timestamptz AS counted_in FROM parts WHERE kind <> 'gpu_seconds'
   UNION ALL
  SELECT quota, amount - least(amount, greatest(%(used)s::bigint - (sum(amount) OVER earlier - amount), 0)), taken_in
    FROM parts WHERE kind = 'gpu_seconds' WINDOW earlier AS (PARTITION BY quota ORDER BY number)
), uses AS (
  SELECT q.id, b.amount
    FROM (SELECT quota, counted_in, sum(amount)::bigint AS amount FROM backs GROUP BY 1, 2) b
    JOIN tenants_quota q ON q.id = b.quota AND (b.counted_in IS NULL OR b.counted_in = q.window_start)
    JOIN tenants_project p ON p.id = q.project_id
   WHERE b.amount > 0
   ORDER BY q.kind = 'burn', cardinality(p.path), q.kind FOR NO KEY UPDATE OF q
)
UPDATE tenants_quota q SET used = greatest(q.used - u.amount, 0) FROM uses u WHERE q.id = u.id
