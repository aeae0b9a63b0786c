-- Show every tenant which slots are taken and how long the queue is, but not by whom. The views read as
-- gpubroker_system, across row-level security; `mine` marks the rows of the current tenant. PostgreSQL demands CREATE
-- on the schema from the new owner of a view; the grant is revoked after the transfer.

CREATE VIEW broker_occupied AS
  SELECT gpu_id, lower(placement) AS start, upper(placement) - lower(placement) AS size, profile, isolation,
         coalesce(tenant_id = current_setting('app.tenant', true), false) AS mine
    FROM broker_allocation WHERE released_at IS NULL;
GRANT SELECT ON broker_occupied TO gpubroker_web, gpubroker_worker, gpubroker_staff;
GRANT CREATE ON SCHEMA public TO gpubroker_system;
ALTER VIEW broker_occupied OWNER TO gpubroker_system;
REVOKE CREATE ON SCHEMA public FROM gpubroker_system;

-- A lease that was started again waits since its restart, not since its creation.
CREATE VIEW broker_waiting AS
  SELECT id AS lease_id, offering_id, quantity, coalesce(requeued_at, created_at) AS created_at,
         coalesce(tenant_id = current_setting('app.tenant', true), false) AS mine
    FROM broker_lease WHERE state = 'queued';
GRANT SELECT ON broker_waiting TO gpubroker_web, gpubroker_worker, gpubroker_staff;
GRANT CREATE ON SCHEMA public TO gpubroker_system;
ALTER VIEW broker_waiting OWNER TO gpubroker_system;
REVOKE CREATE ON SCHEMA public FROM gpubroker_system;

-- Tells that the allocations of a GPU changed.
CREATE VIEW broker_placechange AS SELECT gpu_id, xid FROM broker_allocation;
GRANT SELECT ON broker_placechange TO gpubroker_web, gpubroker_worker, gpubroker_staff;
GRANT CREATE ON SCHEMA public TO gpubroker_system;
ALTER VIEW broker_placechange OWNER TO gpubroker_system;
REVOKE CREATE ON SCHEMA public FROM gpubroker_system;

-- Ended allocations of a GPU and when they ended: their slices still exist there.
CREATE VIEW broker_vacated AS
  SELECT gpu_id, lower(placement) AS start, profile, isolation, held_at, released_at, upper(placement) AS stop
    FROM broker_allocation WHERE released_at IS NOT NULL;
GRANT SELECT ON broker_vacated TO gpubroker_web, gpubroker_worker, gpubroker_staff;
GRANT CREATE ON SCHEMA public TO gpubroker_system;
ALTER VIEW broker_vacated OWNER TO gpubroker_system;
REVOKE CREATE ON SCHEMA public FROM gpubroker_system;
