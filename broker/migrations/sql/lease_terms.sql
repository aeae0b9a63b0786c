-- Show and change notices, attempts and arrays of leases only in transactions of their tenant; staff and the system
-- role may read them.

DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'broker_leasenotice',
    'broker_leaseattempt',
    'broker_leasearray'
  ] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system USING (true)', name);
  END LOOP;
END $$;
