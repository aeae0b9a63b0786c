-- Counts of requests by limit and caller, shared by all web processes. UNLOGGED: their loss costs nothing, and adding
-- to them writes no log.

CREATE UNLOGGED TABLE request_count (
  policy text NOT NULL,
  key text NOT NULL,
  period bigint NOT NULL,
  used bigint NOT NULL,
  counted_at timestamptz NOT NULL,
  PRIMARY KEY (policy, key)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
