"""The Transition chain, the walls, and what everyone may know about who sits where."""

from django.db import migrations

from tenants.models.walls import append_only, handed, tenant_wall

CHAIN = """
ALTER TABLE broker_transition
  ADD CONSTRAINT transition_whole_seconds CHECK (at = date_trunc('second', at)),
  ADD CONSTRAINT transition_chained CHECK (
    (seq = 0 AND prev_seq IS NULL AND prev_at IS NULL) OR
    (seq > 0 AND prev_seq IS NOT NULL AND prev_at IS NOT NULL AND prev_seq = seq - 1 AND prev_at <= at)),
  ADD CONSTRAINT transition_moment_once UNIQUE (lease_id, seq, at),
  ADD CONSTRAINT transition_follows FOREIGN KEY (lease_id, prev_seq, prev_at)
    REFERENCES broker_transition (lease_id, seq, at),
  ADD CONSTRAINT transition_of_a_lease FOREIGN KEY (lease_id) REFERENCES broker_lease (id);
CREATE UNIQUE INDEX transition_released_once ON broker_transition (lease_id) WHERE after = 'released';
CREATE SEQUENCE broker_transition_position;
ALTER TABLE broker_transition
  ALTER COLUMN recorded_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN position SET DEFAULT nextval('broker_transition_position'),
  ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint;
CREATE INDEX transition_stream ON broker_transition (tenant_id, xid, position);
CREATE FUNCTION refuse_after_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.before = 'released' THEN
    RAISE EXCEPTION 'lease % is released: nothing follows', NEW.lease_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER released_is_final BEFORE INSERT ON broker_transition
  FOR EACH ROW EXECUTE FUNCTION refuse_after_released();
"""
UNCHAIN = """
DROP TRIGGER released_is_final ON broker_transition;
DROP FUNCTION refuse_after_released();
DROP INDEX transition_stream;
ALTER TABLE broker_transition ALTER COLUMN xid SET DEFAULT 0, ALTER COLUMN position SET DEFAULT 0;
DROP SEQUENCE broker_transition_position;
DROP INDEX transition_released_once;
ALTER TABLE broker_transition
  DROP CONSTRAINT transition_of_a_lease, DROP CONSTRAINT transition_follows,
  DROP CONSTRAINT transition_moment_once, DROP CONSTRAINT transition_chained,
  DROP CONSTRAINT transition_whole_seconds;
"""

# Everyone may know that a place is taken or how long the queue is, nobody whose it is: the views read
# as the sweep role and say only whether a row is the asker's own.
VIEWS = """
CREATE VIEW broker_occupied AS
  SELECT gpu_id, lower(placement) AS start, upper(placement) - lower(placement) AS size, profile, isolation,
         coalesce(tenant_id = current_setting('app.tenant', true), false) AS mine
    FROM broker_allocation WHERE released_at IS NULL;
GRANT SELECT ON broker_occupied TO gpubroker_web, gpubroker_worker, gpubroker_staff;
CREATE VIEW broker_waiting AS
  SELECT id AS lease_id, offering_id, quantity, created_at,
         coalesce(tenant_id = current_setting('app.tenant', true), false) AS mine
    FROM broker_lease WHERE state = 'queued';
GRANT SELECT ON broker_waiting TO gpubroker_web, gpubroker_worker, gpubroker_staff;
"""
HANDED = handed("VIEW broker_occupied", to="gpubroker_sweep") + handed("VIEW broker_waiting", to="gpubroker_sweep")


class Migration(migrations.Migration):
    dependencies = [("broker", "0001_initial"), ("tenants", "0002_walls")]
    operations = [
        migrations.RunSQL(CHAIN, UNCHAIN),
        tenant_wall("broker_lease"),
        tenant_wall("broker_allocation"),
        tenant_wall("broker_transition"),
        append_only("broker_transition"),
        migrations.RunSQL(VIEWS + HANDED, "DROP VIEW broker_waiting; DROP VIEW broker_occupied;"),
    ]
