-- Show and change limits and requests only in transactions of their tenant. Staff and the system role may read them.
DO $$
DECLARE
  current_tenant CONSTANT text := '(SELECT nullif(current_setting(''app.tenant'', true), ''''))';
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['billing_approvallimit', 'billing_approvalrequest'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant_wall ON %I USING (tenant_id = %s) WITH CHECK (tenant_id = %s)',
                   name, current_tenant, current_tenant);
    EXECUTE format('CREATE POLICY readers ON %I FOR SELECT TO gpubroker_staff, gpubroker_system USING (true)', name);
  END LOOP;
END $$;
