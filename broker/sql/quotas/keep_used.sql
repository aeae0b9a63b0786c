-- A stopped lease keeps only the GPU-hours it used, counted against the oldest part first. When it is started again
-- it takes what it lacks, as an extended lease does.
WITH held AS (SELECT quota_uses #> '{gpu_seconds}' AS use FROM broker_lease WHERE id = %(lease)s),
parts AS (
  SELECT part, number, (part ->> 1)::bigint AS amount,
         sum((part ->> 1)::bigint) OVER (PARTITION BY part ->> 0 ORDER BY number) - (part ->> 1)::bigint AS earlier
    FROM held, jsonb_array_elements(use -> 'parts') WITH ORDINALITY AS p(part, number)
), windows AS (
  SELECT key, value::bigint AS amount, sum(value::bigint) OVER (ORDER BY key) - value::bigint AS earlier
    FROM held, jsonb_each_text(use -> 'windows') AS w(key, value)
), kept AS (
  SELECT (SELECT jsonb_agg(jsonb_set(part, '{1}', to_jsonb(least(amount, %(used)s - earlier))) ORDER BY number)
            FROM parts WHERE earlier < %(used)s) AS parts,
         (SELECT jsonb_object_agg(key, least(amount, %(used)s - earlier))
            FROM windows WHERE earlier < %(used)s) AS windows
)
UPDATE broker_lease l
   SET quota_uses = CASE WHEN held.use IS NULL THEN '{}' ELSE jsonb_build_object('gpu_seconds', jsonb_build_object(
         'amount', least((held.use ->> 'amount')::bigint, %(used)s),
         'parts', coalesce(kept.parts, '[]'), 'windows', coalesce(kept.windows, '{}'))) END
  FROM held, kept WHERE l.id = %(lease)s
