-- The histories of some volumes, each up to the step that ended its last charged stretch.
SELECT step.volume_id, step.seq, step.at, step.size_gib, step.offering_id, step.project_id
  FROM unnest(%(volumes)s::text[], %(lasts)s::int[]) AS wanted(id, last)
  JOIN broker_volumestep step ON step.volume_id = wanted.id AND step.seq <= wanted.last + 1
 ORDER BY step.volume_id, step.seq
