-- Look up a credential with its bearer, roles and tenant, and set app.tenant, in one round trip. The functions run as
-- gpubroker_auth, which may read memberships of all tenants and nothing else. PostgreSQL demands CREATE on the schema
-- from the new owner of a function; the grant is revoked after the transfer.

-- A role that was granted on a project is returned with the path of the project; an empty path means the whole
-- tenant.
CREATE FUNCTION knock_with_token(wanted text, hashed text, at timestamptz)
RETURNS TABLE (token_id text, digest text, scopes text[], last_used_at timestamptz, within text[],
               bearer_kind text, bearer_id text, bearer_label text, grants jsonb,
               tenant_id text, tenant_name text, time_zone text, currency text,
               suspended_at timestamptz, version int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  FOR token_id, digest, scopes, last_used_at, within, bearer_kind, bearer_id, bearer_label, grants,
      tenant_id, tenant_name, time_zone, currency, suspended_at, version IN
  SELECT t.id::text, t.digest::text, t.scopes::text[], t.last_used_at, coalesce(w.path::text[], '{}'),
         CASE WHEN u.id IS NULL THEN 'service_account' ELSE 'user' END,
         coalesce(u.id, s.id)::text, coalesce(u.email, s.name)::text, g.held,
         n.id::text, n.name::text, n.time_zone::text, n.currency::text, n.suspended_at, n.version
    FROM tenants_apitoken t
    JOIN tenants_tenant n ON n.id = t.tenant_id
    LEFT JOIN tenants_project w ON w.id = t.project_id
    LEFT JOIN tenants_user u ON u.id = t.user_id AND u.is_active
    LEFT JOIN tenants_serviceaccount s ON s.id = t.service_account_id AND s.closed_at IS NULL
    CROSS JOIN LATERAL (
      SELECT coalesce(jsonb_agg(jsonb_build_array(r.role, coalesce(p.path, '{}'))), '[]') AS held
        FROM (SELECT m.role, m.project_id FROM tenants_member m
               WHERE m.user_id = u.id AND m.tenant_id = t.tenant_id
               UNION ALL
              SELECT s.role, s.project_id WHERE s.id IS NOT NULL) r
        LEFT JOIN tenants_project p ON p.id = r.project_id) g
   WHERE t.prefix = wanted AND t.digest = hashed AND t.revoked_at IS NULL AND t.expires_at > at
     AND (u.id IS NOT NULL OR s.id IS NOT NULL) AND g.held <> '[]'
  LOOP
    PERFORM set_config('app.tenant', tenant_id, true);  -- only once everything above has been found good
    RETURN NEXT;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION knock_with_token(text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION knock_with_token(text, text, timestamptz) TO gpubroker_web, gpubroker_worker;
GRANT CREATE ON SCHEMA public TO gpubroker_auth;
ALTER FUNCTION knock_with_token(text, text, timestamptz) OWNER TO gpubroker_auth;
REVOKE CREATE ON SCHEMA public FROM gpubroker_auth;

-- Choose the requested tenant, or else the first one that the user joined. `others` lists all tenants of the user.
CREATE FUNCTION knock_with_user(who text, wanted text)
RETURNS TABLE (grants jsonb, tenant_id text, tenant_name text, time_zone text, currency text,
               suspended_at timestamptz, version int, others jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE chosen text;
BEGIN
  SELECT m.tenant_id INTO chosen FROM tenants_member m JOIN tenants_user u ON u.id = m.user_id
   WHERE m.user_id = who AND u.is_active
   ORDER BY m.tenant_id <> wanted, m.created_at, m.id LIMIT 1;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM set_config('app.tenant', chosen, true);
  RETURN QUERY
  SELECT (SELECT jsonb_agg(jsonb_build_array(m.role, coalesce(p.path, '{}')))
            FROM tenants_member m LEFT JOIN tenants_project p ON p.id = m.project_id
           WHERE m.user_id = who AND m.tenant_id = chosen),
         n.id::text, n.name::text, n.time_zone::text, n.currency::text, n.suspended_at, n.version,
         (SELECT jsonb_agg(jsonb_build_array(o.id, o.name) ORDER BY o.name, o.id) FROM tenants_tenant o
           WHERE o.id IN (SELECT m.tenant_id FROM tenants_member m WHERE m.user_id = who))
    FROM tenants_tenant n WHERE n.id = chosen;
END $$;
REVOKE ALL ON FUNCTION knock_with_user(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION knock_with_user(text, text) TO gpubroker_web, gpubroker_worker;
GRANT CREATE ON SCHEMA public TO gpubroker_auth;
ALTER FUNCTION knock_with_user(text, text) OWNER TO gpubroker_auth;
REVOKE CREATE ON SCHEMA public FROM gpubroker_auth;
