-- GPU slices in use at the end of every day, for the chart.
SELECT d::date::text, coalesce(sum(upper(a.placement) - lower(a.placement)), 0)::bigint
  FROM generate_series(%(first)s::timestamptz, %(last)s::timestamptz, '1 day') d
  LEFT JOIN broker_allocation a ON a.held_at <= d AND (a.released_at IS NULL OR a.released_at > d)
 GROUP BY d ORDER BY d
