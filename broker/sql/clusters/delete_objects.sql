DELETE FROM broker_clusterobject o
 USING jsonb_to_recordset(%(gone)s::jsonb) AS s(kind text, namespace text, name text, version bigint)
 WHERE o.cluster_id = %(cluster)s AND o.kind = s.kind AND o.namespace = s.namespace AND o.name = s.name
   AND o.version <= s.version
RETURNING o.kind, o.namespace, o.name
