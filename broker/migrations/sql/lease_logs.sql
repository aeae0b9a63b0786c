-- Show and change logs only in transactions of their tenant. Staff and the system role may read how far each was
-- collected, and nobody but the tenant's own transactions its lines.

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'broker_leaselog',
    'broker_leaselogchunk'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
  END LOOP;
END $$;

CREATE POLICY readers ON broker_leaselog FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);
REVOKE ALL ON broker_leaselogchunk FROM gpubroker_staff, gpubroker_system, gpubroker_auth;
