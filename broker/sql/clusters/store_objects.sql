-- An older version of an object never replaces a newer one, in whatever order they arrive. One statement, so that a
-- batch costs one round trip; it only uses the constraint's index, so that a plan made while the table was empty
-- stays good.
WITH heard AS (
  INSERT INTO broker_clusterwatch (cluster_id, kind, version, last_event_at, synced_at)
  SELECT %(cluster)s, h.kind, h.version, %(now)s, %(now)s
    FROM jsonb_to_recordset(%(watch_versions)s::jsonb) AS h(kind text, version bigint)
      ON CONFLICT (cluster_id, kind) DO UPDATE
     SET version = excluded.version, last_event_at = excluded.last_event_at,
         synced_at = CASE WHEN %(listed)s THEN excluded.synced_at ELSE broker_clusterwatch.synced_at END
)
INSERT INTO broker_clusterobject
       (cluster_id, kind, namespace, name, uid, version, spec_name, body, seen_at)
SELECT %(cluster)s, s.kind, s.namespace, s.name, s.uid, s.version, s.spec_name, s.body,
       %(now)s::timestamptz - make_interval(secs => s.age_s)
  FROM jsonb_to_recordset(%(seen)s::jsonb) AS s(kind text, namespace text, name text, uid text, version bigint,
                                         spec_name text, body jsonb, age_s float8)
    ON CONFLICT (cluster_id, kind, namespace, name) DO UPDATE
   SET uid = excluded.uid, version = excluded.version, spec_name = excluded.spec_name,
       body = excluded.body, seen_at = excluded.seen_at
 WHERE excluded.version > broker_clusterobject.version
RETURNING kind, namespace, name
