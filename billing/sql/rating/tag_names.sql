-- The names of tags on leases, most used first.
SELECT tag.name FROM broker_lease l CROSS JOIN LATERAL jsonb_object_keys(l.tags) AS tag (name)
 WHERE (%(projects)s::text[] IS NULL OR l.project_id = ANY(%(projects)s::text[])) AND l.tags <> '{}'
 GROUP BY tag.name ORDER BY count(*) DESC, tag.name LIMIT %(most)s
