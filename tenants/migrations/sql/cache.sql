-- Create the table of Django's database cache, which counts attempts to sign in. It is UNLOGGED: its loss costs
-- nothing.

CREATE UNLOGGED TABLE cache (
  cache_key varchar(255) PRIMARY KEY,
  value text NOT NULL,
  expires timestamptz NOT NULL
);
CREATE INDEX cache_expires ON cache (expires);
