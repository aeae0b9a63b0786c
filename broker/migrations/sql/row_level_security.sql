-- Show and change rows only in transactions that have set app.tenant to their tenant. FORCE binds the owner too, so a
-- data migration has to run tenant by tenant. The roles in `readers` may read the rows of all tenants.

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'broker_lease',
    'broker_allocation',
    'broker_transition',
    'broker_volume',
    'broker_relocation',
    'broker_volumesizechange'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system'
                   ' USING (true)', name);
  END LOOP;
END $$;
