-- Sum the seconds that GPUs of each model spent in each situation: by what was on them, in service or out of it. A
-- GPU's time is cut at every change; what was on it between two cuts is read from the rows.
WITH gpu AS (
  SELECT g.id, g.gpu_model_id AS model, g.node_id, g.health, n.state,
         greatest(date_trunc('second', c.created_at), %(first)s) AS since
    FROM broker_gpu g
    JOIN broker_node n ON n.id = g.node_id
    JOIN broker_cluster c ON c.id = n.cluster_id
   WHERE c.created_at < %(last)s
), hold AS MATERIALIZED (
  SELECT a.gpu_id, a.isolation || ' ' || a.profile || ' ' || lower(a.placement) AS what, lower(a.placement) AS start,
         greatest(date_trunc('second', a.held_at), gpu.since) AS s,
         least(coalesce(date_trunc('second', a.released_at), %(last)s), %(last)s) AS e
    FROM broker_allocation a
    JOIN gpu ON gpu.id = a.gpu_id
   WHERE a.held_at < %(last)s AND (a.released_at IS NULL OR a.released_at > gpu.since)
), word AS (  -- service state of each GPU or its node, and since when
  SELECT gpu.id, change.gpu_id IS NULL AS of_node, date_trunc('second', change.at) AS at, change.id AS n, change.after
    FROM gpu
    JOIN broker_inventorychange change
      ON change.gpu_id = gpu.id OR (change.gpu_id IS NULL AND change.node_id = gpu.node_id)
   UNION ALL
  SELECT gpu.id, of_node, '-infinity', 0,
         coalesce((SELECT change.before FROM broker_inventorychange change
                    WHERE CASE WHEN of_node THEN change.gpu_id IS NULL AND change.node_id = gpu.node_id
                               ELSE change.gpu_id = gpu.id END
                    ORDER BY change.at, change.id LIMIT 1),
                  CASE WHEN of_node THEN gpu.state ELSE gpu.health END)
    FROM gpu
   CROSS JOIN (VALUES (true), (false)) AS kind(of_node)
), reported_span AS (
  SELECT id, after, at AS s,
         lead(at, 1, 'infinity') OVER (PARTITION BY id, of_node ORDER BY at, n) AS e
    FROM word
), outage AS MATERIALIZED (
  SELECT reported_span.id, greatest(reported_span.s, gpu.since) AS s, least(reported_span.e, %(last)s) AS e
    FROM reported_span
    JOIN gpu USING (id)
   WHERE reported_span.after NOT IN ('ready', 'healthy') AND reported_span.s < %(last)s AND reported_span.e > gpu.since
), cut AS (
  SELECT id, since AS at FROM gpu UNION SELECT id, %(last)s FROM gpu
   UNION SELECT gpu_id, s FROM hold UNION SELECT gpu_id, e FROM hold
   UNION SELECT id, s FROM outage UNION SELECT id, e FROM outage
), span AS (
  SELECT id, at AS s, lead(at) OVER (PARTITION BY id ORDER BY at) AS e FROM cut
), situation AS (
  SELECT span.id, span.s, span.e, array_remove(array_agg(hold.what ORDER BY hold.start, hold.what), NULL) AS held
    FROM span
    LEFT JOIN hold ON hold.gpu_id = span.id AND hold.s <= span.s AND hold.e >= span.e
   WHERE span.e IS NOT NULL
   GROUP BY span.id, span.s, span.e
)
SELECT gpu.model, situation.held,
       EXISTS (SELECT FROM outage o WHERE o.id = gpu.id AND o.s <= situation.s AND o.e >= situation.e),
       sum(extract(epoch FROM situation.e - situation.s))::bigint
  FROM situation
  JOIN gpu USING (id)
 GROUP BY 1, 2, 3
