-- Drop the indexes for LIKE 'prefix%' that Django adds to every text key: no query uses them, and each slows down
-- writes.

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

-- Rating asks, tenant by tenant, for billable intervals that ended since its mark.
CREATE INDEX transition_billable_end ON broker_transition (tenant_id, xid) WHERE before = 'active';
