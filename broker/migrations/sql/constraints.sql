-- Chain the transitions of a lease and the steps of a volume: each names the one before it, times are whole seconds
-- and never run backwards. Charges are computed from these two tables.

CREATE SEQUENCE broker_transition_position;  -- orders the event stream
ALTER TABLE broker_transition
  ALTER COLUMN recorded_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN position SET DEFAULT nextval('broker_transition_position'),
  ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint;

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

ALTER TABLE broker_volumesizechange
  ALTER COLUMN recorded_at SET DEFAULT clock_timestamp(),
  ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint,
  ADD CONSTRAINT volume_step_whole_seconds CHECK (at = date_trunc('second', at)),
  ADD CONSTRAINT volume_step_chained CHECK (
    (seq = 0 AND prev_seq IS NULL AND prev_at IS NULL AND prev_gib IS NULL AND size_gib > 0) OR
    (seq > 0 AND prev_seq IS NOT NULL AND prev_at IS NOT NULL AND prev_gib IS NOT NULL
     AND prev_seq = seq - 1 AND prev_at <= at AND prev_gib > 0)),  -- no step follows a deletion
  ADD CONSTRAINT volume_step_moment_once UNIQUE (volume_id, seq, at, size_gib, offering_id, project_id),
  ADD CONSTRAINT volume_step_follows FOREIGN KEY (volume_id, prev_seq, prev_at, prev_gib, offering_id, project_id)
    REFERENCES broker_volumesizechange (volume_id, seq, at, size_gib, offering_id, project_id),
  ADD CONSTRAINT volume_step_of_a_volume FOREIGN KEY (volume_id) REFERENCES broker_volume (id);
