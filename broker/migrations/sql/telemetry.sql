-- Samples by day: whole days are dropped, so no row is ever deleted or updated one by one.

CREATE TABLE broker_gpusample (
  slot_id integer NOT NULL,
  at timestamptz NOT NULL,
  energy_mj bigint,
  memory_used_mib integer,
  power_dw integer,
  throttle_reasons integer,
  pcie_rx_kib integer,
  pcie_tx_kib integer,
  engine_active smallint,
  sm_active smallint,
  tensor_active smallint,
  dram_active smallint,
  temperature_c smallint,
  sm_clock_mhz smallint,
  PRIMARY KEY (slot_id, at)
) PARTITION BY RANGE (at);

CREATE TABLE broker_gpuminute (
  slot_id integer NOT NULL,
  at timestamptz NOT NULL,
  energy_mj bigint,
  throttle_reasons integer,
  memory_used_mib integer,
  memory_max_mib integer,
  power_dw integer,
  samples smallint NOT NULL,
  throttled_samples smallint NOT NULL,
  engine_active smallint,
  engine_max smallint,
  sm_active smallint,
  tensor_active smallint,
  dram_active smallint,
  temperature_c smallint,
  PRIMARY KEY (slot_id, at)
) PARTITION BY RANGE (at);

CREATE TABLE broker_gpuhour (LIKE broker_gpuminute INCLUDING ALL) PARTITION BY RANGE (at);

-- The application owns no table, so it asks for the partitions of a day, and for dropping old ones.
CREATE FUNCTION create_telemetry_partition(kind text, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  parent text := 'broker_' || kind;
  name text := parent || '_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF kind NOT IN ('gpusample', 'gpuminute', 'gpuhour') THEN
    RAISE EXCEPTION 'no telemetry is kept as %', kind;
  END IF;
  IF to_regclass(name) IS NULL THEN
    EXECUTE format('CREATE TABLE IF NOT EXISTS public.%I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)', name, parent,
                   day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
  END IF;
END $$;

CREATE FUNCTION drop_telemetry_partitions(kind text, before date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  parent text := 'broker_' || kind;
  name text;
  dropped integer := 0;
BEGIN
  IF kind NOT IN ('gpusample', 'gpuminute', 'gpuhour') THEN
    RAISE EXCEPTION 'no telemetry is kept as %', kind;
  END IF;
  FOR name IN
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = parent::regclass AND c.relname < parent || '_' || to_char(before, 'YYYYMMDD')
  LOOP
    EXECUTE format('DROP TABLE public.%I', name);
    dropped := dropped + 1;
  END LOOP;
  RETURN dropped;
END $$;

REVOKE ALL ON FUNCTION create_telemetry_partition(text, date) FROM PUBLIC;
REVOKE ALL ON FUNCTION drop_telemetry_partitions(text, date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_telemetry_partition(text, date) TO gpubroker_web, gpubroker_worker;
GRANT EXECUTE ON FUNCTION drop_telemetry_partitions(text, date) TO gpubroker_web, gpubroker_worker;

-- A mean of whole numbers with weights; unknown values have no weight.
CREATE FUNCTION add_weighted(state bigint[], value bigint, weight bigint) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT CASE WHEN value IS NULL THEN state ELSE ARRAY[state[1] + value * weight, state[2] + weight] END';
CREATE FUNCTION finish_weighted(state bigint[]) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT round(state[1]::numeric / nullif(state[2], 0))';
CREATE AGGREGATE weighted_mean(bigint, bigint) (
  SFUNC = add_weighted, STYPE = bigint[], FINALFUNC = finish_weighted, INITCOND = '{0,0}', PARALLEL = SAFE
);
