-- Drop the indexes for LIKE 'prefix%' that Django adds to every text key: no query uses them, and each slows down
-- writes.

DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT indexname FROM pg_indexes
               WHERE schemaname = current_schema() AND tablename LIKE 'broker\_%' AND indexname LIKE '%\_like'
  LOOP
    EXECUTE format('DROP INDEX %I', name);
  END LOOP;
END $$;

CREATE INDEX transition_stream ON broker_transition (tenant_id, xid, position);  -- the event stream of a tenant
CREATE INDEX transition_active_end ON broker_transition (at) WHERE before = 'active';  -- what ended lately
