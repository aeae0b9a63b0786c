-- Show and change rows only in transactions that have set app.tenant to their tenant. FORCE binds the owner too, so a
-- data migration has to run tenant by tenant. The roles in `readers` may read the rows of all tenants.

-- gpubroker_auth reads the tables below as well, to find the tenant of a credential before app.tenant is set.
DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'tenants_project',
    'tenants_member',
    'tenants_serviceaccount',
    'tenants_invitation',
    'tenants_apitoken'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system, gpubroker_auth'
                   ' USING (true)', name);
  END LOOP;
END $$;

ALTER TABLE tenants_tenant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON tenants_tenant
  USING (id = (SELECT nullif(current_setting('app.tenant', true), '')))
  WITH CHECK (id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON tenants_tenant FOR SELECT TO gpubroker_staff, gpubroker_system, gpubroker_auth USING (true);

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'tenants_quota',
    'tenants_idempotencyrecord',
    'tenants_auditevent'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system'
                   ' USING (true)', name);
  END LOOP;
END $$;

-- Actions of operators on the whole installation have no tenant: every role may add such an event, only staff reads it.
CREATE POLICY operators_add ON tenants_auditevent FOR INSERT WITH CHECK (tenant_id = '');
