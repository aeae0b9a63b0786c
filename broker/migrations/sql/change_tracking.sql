-- Number rows by the transaction that last changed something of them that placement reads. The in-memory state of
-- placement asks for newer numbers. A deleted row gives its number to the row above it.

CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.xid := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$;

CREATE FUNCTION note_place_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE broker_gpu SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.gpu_id;
  RETURN NULL;
END $$;

CREATE FUNCTION note_gpu_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE broker_node SET xid = pg_current_xact_id()::text::bigint WHERE id = OLD.node_id;
  RETURN NULL;
END $$;

ALTER TABLE broker_allocation ADD COLUMN xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX allocation_changed ON broker_allocation (xid);
CREATE TRIGGER changed BEFORE UPDATE ON broker_allocation FOR EACH ROW
  WHEN ((OLD.gpu_id, OLD.placement, OLD.profile, OLD.isolation, OLD.released_at)
        IS DISTINCT FROM
        (NEW.gpu_id, NEW.placement, NEW.profile, NEW.isolation, NEW.released_at))
  EXECUTE FUNCTION note_change();

ALTER TABLE broker_gpu ADD COLUMN xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX gpu_changed ON broker_gpu (xid);
CREATE TRIGGER changed BEFORE UPDATE ON broker_gpu FOR EACH ROW
  WHEN ((OLD.node_id, OLD.index, OLD.gpu_model_id, OLD.layout_policy, OLD.fixed_layout, OLD.health,
         OLD.out_of_service_since, OLD.xid)
        IS DISTINCT FROM
        (NEW.node_id, NEW.index, NEW.gpu_model_id, NEW.layout_policy, NEW.fixed_layout, NEW.health,
         NEW.out_of_service_since, NEW.xid))
  EXECUTE FUNCTION note_change();

ALTER TABLE broker_node ADD COLUMN xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX node_changed ON broker_node (xid);
CREATE TRIGGER changed BEFORE UPDATE ON broker_node FOR EACH ROW
  WHEN ((OLD.cluster_id, OLD.name, OLD.state, OLD.xid)
        IS DISTINCT FROM
        (NEW.cluster_id, NEW.name, NEW.state, NEW.xid))
  EXECUTE FUNCTION note_change();

ALTER TABLE broker_cluster ADD COLUMN xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX cluster_changed ON broker_cluster (xid);
CREATE TRIGGER changed BEFORE UPDATE ON broker_cluster FOR EACH ROW
  WHEN ((OLD.name, OLD.region, OLD.driver, OLD.unreachable_since, OLD.frozen, OLD.allow_shared_gpus, OLD.auto_repartition)
        IS DISTINCT FROM
        (NEW.name, NEW.region, NEW.driver, NEW.unreachable_since, NEW.frozen, NEW.allow_shared_gpus, NEW.auto_repartition))
  EXECUTE FUNCTION note_change();

CREATE TRIGGER gone AFTER DELETE ON broker_allocation FOR EACH ROW EXECUTE FUNCTION note_place_gone();
CREATE TRIGGER gone AFTER DELETE ON broker_gpu FOR EACH ROW EXECUTE FUNCTION note_gpu_gone();
