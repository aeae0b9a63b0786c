-- Read at every observation of a lease: each part is one index lookup, whatever the table statistics.
SELECT kind, spec_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND spec_name = %(order)s
 UNION ALL
SELECT kind, spec_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND kind = %(node)s AND namespace = '' AND name = ANY(%(hosts)s::text[])
 UNION ALL
SELECT kind, spec_name, seen_at, body::text FROM broker_clusterobject
 WHERE cluster_id = %(cluster)s AND kind = %(anchor)s AND namespace = %(namespace)s AND name = %(pulse)s
 UNION ALL
SELECT '', kind, last_event_at, '' FROM broker_clusterwatch
 WHERE cluster_id = %(cluster)s AND kind IN (%(pod)s, %(claim)s)
