-- Only a table's owner may refresh its statistics.
CREATE FUNCTION refresh_lease_statistics() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  ANALYZE broker_offering, broker_lease, broker_allocation;
END $$;
REVOKE ALL ON FUNCTION refresh_lease_statistics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION refresh_lease_statistics() TO gpubroker_web, gpubroker_worker;
