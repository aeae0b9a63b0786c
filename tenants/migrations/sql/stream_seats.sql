-- Live streams that each events process has open, by tenant. UNLOGGED: after a crash of the server all streams are gone.
-- A process counts while it is alive: it says so every few seconds, so that one that dies frees its seats.

CREATE UNLOGGED TABLE stream_process (
  id text PRIMARY KEY,
  alive_until timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE UNLOGGED TABLE stream_seats (
  process_id text NOT NULL REFERENCES stream_process ON DELETE CASCADE,
  tenant_id text NOT NULL,
  seats int NOT NULL CHECK (seats > 0),
  PRIMARY KEY (tenant_id, process_id)
) WITH (fillfactor = 50);
CREATE INDEX stream_seats_of_process ON stream_seats (process_id);
