-- Notices belong to the tenant of the spot lease. Promised slots change what placement reads of their GPU, which then
-- gets the number of the transaction, as in change_tracking.sql.

ALTER TABLE broker_reclaimnotice ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON broker_reclaimnotice
  USING (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')))
  WITH CHECK (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON broker_reclaimnotice FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);

CREATE FUNCTION note_slot_promised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE broker_gpu SET xid = pg_current_xact_id()::text::bigint WHERE id = coalesce(NEW.gpu_id, OLD.gpu_id);
  RETURN NULL;
END $$;
CREATE TRIGGER changed AFTER INSERT OR DELETE ON broker_promisedslot
  FOR EACH ROW EXECUTE FUNCTION note_slot_promised();
