-- Ending or abandoned placements count as free; one not begun may last as long as was requested.
SELECT gpu_id, max(CASE WHEN NOT going THEN greatest(ends, %(now)s)
                        WHEN since > %(stuck)s THEN %(now)s
                        ELSE %(now)s + interval '10 years' END)
  FROM (SELECT a.gpu_id, coalesce(l.ends_at, %(now)s + make_interval(secs => l.max_duration_s)) AS ends,
               (l.state IN ('releasing', 'stopping') OR a.leaving_since IS NOT NULL) AND NOT a.is_relocation AS going,
               coalesce(a.leaving_since, l.state_since) AS since
          FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
         WHERE a.released_at IS NULL AND a.gpu_id = ANY(%(gpus)s)) held
 GROUP BY gpu_id
