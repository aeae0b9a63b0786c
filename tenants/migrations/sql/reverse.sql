-- Undo the other files of this folder, in the reverse order. The dropped prefix indexes do not come back.

SET LOCAL ROLE gpubroker_auth;  -- only the owner of a function may drop it
DROP FUNCTION knock_with_user(text, text), knock_with_token(text, text, timestamptz);
RESET ROLE;
DROP TABLE cache;

DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT policyname AS name, tablename AS place FROM pg_policies
                WHERE schemaname = current_schema() AND tablename LIKE 'tenants\_%' LOOP
    EXECUTE format('DROP POLICY %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relname LIKE 'tenants\_%'
                  AND relrowsecurity LOOP
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY', item.place);
  END LOOP;
  FOR item IN SELECT t.tgname AS name, c.relname AS place FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'tenants\_%'
                  AND NOT t.tgisinternal LOOP
    EXECUTE format('DROP TRIGGER %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname LIKE 'tenants\_%' LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO gpubroker_web, gpubroker_worker', item.place);
    EXECUTE format('GRANT SELECT ON %I TO gpubroker_staff, gpubroker_system, gpubroker_auth', item.place);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %I FROM gpubroker_system', item.place);
  END LOOP;
END $$;

DROP FUNCTION refuse_change();
