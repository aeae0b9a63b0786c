-- Keep bundles of cancelled invoices unchanged, each visible to its own tenant.

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON billing_storedbundle
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON billing_storedbundle
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON billing_storedbundle FROM gpubroker_web, gpubroker_worker;
ALTER TABLE billing_storedbundle ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON billing_storedbundle
  USING (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')))
  WITH CHECK (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON billing_storedbundle FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);
DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'billing\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', name);
  END LOOP;
END $$;
