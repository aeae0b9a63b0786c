-- Undo the other files of this folder, in the reverse order. The dropped prefix indexes do not come back.

DROP INDEX transition_active_end, transition_stream;

DO $$
DECLARE
  item record;
BEGIN
  FOR item IN SELECT policyname AS name, tablename AS place FROM pg_policies
                WHERE schemaname = current_schema() AND tablename LIKE 'broker\_%' LOOP
    EXECUTE format('DROP POLICY %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relname LIKE 'broker\_%'
                  AND relrowsecurity LOOP
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY', item.place);
  END LOOP;
  FOR item IN SELECT t.tgname AS name, c.relname AS place FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'broker\_%'
                  AND NOT t.tgisinternal LOOP
    EXECUTE format('DROP TRIGGER %I ON %I', item.name, item.place);
  END LOOP;
  FOR item IN SELECT relname AS place FROM pg_class
                WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname LIKE 'broker\_%' LOOP
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO gpubroker_web, gpubroker_worker', item.place);
    EXECUTE format('GRANT SELECT ON %I TO gpubroker_staff, gpubroker_system, gpubroker_auth', item.place);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %I FROM gpubroker_system', item.place);
  END LOOP;
END $$;

DROP FUNCTION hold_once_free(), refuse_after_released(), note_gpu_gone(), note_place_gone(), note_change();
DROP FUNCTION quota_counts_holdings() CASCADE;  -- its trigger is on a table of tenants
SET LOCAL ROLE gpubroker_system;  -- only the owner of a view may drop it
DROP VIEW broker_vacated, broker_placechange, broker_waiting, broker_occupied;
RESET ROLE;
ALTER TABLE broker_allocation DROP COLUMN xid;
ALTER TABLE broker_gpu DROP COLUMN xid;
ALTER TABLE broker_node DROP COLUMN xid;
ALTER TABLE broker_cluster DROP COLUMN xid;
ALTER TABLE broker_volumesizechange
  DROP CONSTRAINT volume_step_of_a_volume, DROP CONSTRAINT volume_step_follows,
  DROP CONSTRAINT volume_step_moment_once, DROP CONSTRAINT volume_step_chained,
  DROP CONSTRAINT volume_step_whole_seconds,
  ALTER COLUMN xid SET DEFAULT 0, ALTER COLUMN recorded_at SET DEFAULT statement_timestamp();
DROP INDEX transition_released_once;
ALTER TABLE broker_transition
  DROP CONSTRAINT transition_of_a_lease, DROP CONSTRAINT transition_follows,
  DROP CONSTRAINT transition_moment_once, DROP CONSTRAINT transition_chained,
  DROP CONSTRAINT transition_whole_seconds,
  ALTER COLUMN xid SET DEFAULT 0, ALTER COLUMN position SET DEFAULT 0,
  ALTER COLUMN recorded_at SET DEFAULT statement_timestamp();
DROP SEQUENCE broker_transition_position;
