-- List the steps of some volumes, up to the end of each one's last charged interval.
SELECT step.volume_id, step.seq, step.at, step.size_gib, step.offering_id, step.project_id
  FROM unnest(%(volumes)s::text[], %(lasts)s::int[]) AS wanted(id, last)
  JOIN broker_volumesizechange step ON step.volume_id = wanted.id AND step.seq <= wanted.last + 1
 ORDER BY step.volume_id, step.seq
