-- An abandoned placement counts as releasing, whatever its lease does elsewhere; its end is unknown.
SELECT a.gpu_id, a.isolation, lower(a.placement), upper(a.placement) - lower(a.placement), a.profile,
       extract(epoch FROM CASE WHEN a.leaving_since IS NOT NULL THEN a.leaving_since
                               WHEN l.state = 'active' THEN coalesce(l.active_at, a.held_at)
                               ELSE a.held_at END)::float8,
       l.id, l.name, CASE WHEN a.leaving_since IS NULL THEN l.state ELSE 'releasing' END,
       CASE WHEN a.leaving_since IS NULL THEN extract(epoch FROM l.ends_at)::float8 END,
       l.offering_id, o.price_class, extract(epoch FROM a.held_at)::float8,
       CASE WHEN l.state = 'active' AND l.generation = a.generation THEN extract(epoch FROM l.state_since)::bigint END,
       t.id, t.name
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
  JOIN broker_offering o ON o.id = l.offering_id JOIN tenants_tenant t ON t.id = a.tenant_id
  JOIN broker_gpu g ON g.id = a.gpu_id
 WHERE a.released_at IS NULL
   AND (%(node)s = '' OR g.node_id = %(node)s)
   AND (%(gpu)s = '' OR %(gpu)s IN (g.id, g.node_id || '.' || g.index))
 ORDER BY a.gpu_id, lower(a.placement)
