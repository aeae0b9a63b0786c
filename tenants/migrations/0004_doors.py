"""Who is knocking? One round trip finds credential, bearer, roles and tenant, and enters the tenant.

The functions run as gpubroker_door, which may read memberships across tenants and nothing else.
"""

from django.db import migrations

from tenants.models.walls import handed

# A role granted on a project travels as the project's path, {} meaning the tenant as a whole.
WITH_TOKEN = """
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
"""

# The tenant asked for, or the oldest the user belongs to; `others` is every one for the switcher.
WITH_USER = """
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
"""

HANDS = """
REVOKE ALL ON FUNCTION {0} FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {0} TO gpubroker_web, gpubroker_worker;
"""


def for_the_door(call: str) -> str:
    return HANDS.format(call) + handed(f"FUNCTION {call}", to="gpubroker_door")


TOKEN_CALL = "knock_with_token(text, text, timestamptz)"
USER_CALL = "knock_with_user(text, text)"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_cache")]
    operations = [
        migrations.RunSQL(WITH_TOKEN + for_the_door(TOKEN_CALL), f"DROP FUNCTION {TOKEN_CALL};"),
        migrations.RunSQL(WITH_USER + for_the_door(USER_CALL), f"DROP FUNCTION {USER_CALL};"),
    ]
