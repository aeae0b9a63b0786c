-- Refuse changes of histories: charges, out-of-service hours and audits are computed from them.

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY[
    'broker_transition',
    'broker_repartitionlogentry',
    'broker_relocationlogentry',
    'broker_inventorychange',
    'broker_volumesizechange'
  ] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I'
                   ' FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I'
                   ' FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name);
    EXECUTE format('REVOKE UPDATE, DELETE ON %I FROM gpubroker_web, gpubroker_worker', name);
  END LOOP;
END $$;
