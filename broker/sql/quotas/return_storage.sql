-- Every quota on the path includes it: taken when the volume was created, or counted when the quota was.
WITH on_path AS (
  SELECT id FROM tenants_quota WHERE kind = 'storage' AND project_id = ANY(%(path)s::text[])
   ORDER BY array_position(%(path)s::text[], project_id::text) FOR NO KEY UPDATE
)
UPDATE tenants_quota q SET used = q.used - %(gib)s FROM on_path p WHERE p.id = q.id
