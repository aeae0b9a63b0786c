-- Every transaction locks rows from the root down, so that paths through one tree never deadlock. GPU-hour usage
-- resets each month, and a row never goes back to an earlier window: a request that read the clock just before
-- midnight but locks the row after a later request counts in the new month. Burn is taken by a later gate, once the
-- path is locked for the other kinds, so it is returned last, too.
WITH requested AS (SELECT * FROM unnest(%(kinds)s::text[], %(amounts)s::bigint[]) AS a(kind, amount)),
locked AS (
  SELECT q.id, q.kind, q.project_id, q.soft_limit, a.amount, q.used, q.window_start,
         CASE WHEN q.kind = 'gpu_seconds' THEN greatest(q.window_start, %(window)s::timestamptz) END AS counted_in
    FROM tenants_quota q JOIN requested a USING (kind)
   WHERE q.project_id = ANY(%(path)s::text[])
   ORDER BY array_position(%(path)s::text[], q.project_id::text), q.kind
     FOR NO KEY UPDATE OF q
), on_path AS (
  SELECT id, kind, project_id, soft_limit, amount, counted_in,
         CASE WHEN kind = 'gpu_seconds' AND window_start IS DISTINCT FROM counted_in THEN 0 ELSE used END AS used
    FROM locked
), taken AS (
  UPDATE tenants_quota q
     SET used = p.used + p.amount, window_start = coalesce(p.counted_in, q.window_start)
    FROM on_path p
   WHERE q.id = p.id AND p.used + p.amount <= p.soft_limit
  RETURNING q.id
)
SELECT p.id, p.kind, p.project_id, p.used, p.soft_limit, p.amount, t.id IS NOT NULL, p.counted_in
  FROM on_path p LEFT JOIN taken t USING (id)
