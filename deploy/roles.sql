-- The five walls a process can stand behind. Run once per database by an administrator, before migrating.
-- Idempotent; passwords of the three logins are set by whoever runs this (ALTER ROLE … PASSWORD …).
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_owner') THEN
    CREATE ROLE gpubroker_owner LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  -- NOINHERIT: membership gives nothing until a transaction says SET LOCAL ROLE, and ends with it.
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_web') THEN
    CREATE ROLE gpubroker_web LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_worker') THEN
    CREATE ROLE gpubroker_worker LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_staff') THEN
    CREATE ROLE gpubroker_staff NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_sweep') THEN
    CREATE ROLE gpubroker_sweep NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_door') THEN
    CREATE ROLE gpubroker_door NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
END $$;
-- An administrator who is no superuser speaks for the owner below, and hands it the database, as its member.
GRANT gpubroker_owner TO CURRENT_USER;
GRANT gpubroker_staff, gpubroker_sweep, gpubroker_door TO gpubroker_web, gpubroker_worker;
-- The owner hands views to the sweep role, so that a view sees what that role may see.
GRANT gpubroker_sweep, gpubroker_door TO gpubroker_owner;
-- Only the owner creates. To hand a view or a function over, a migration lends CREATE for as long as that takes.
DO $$
BEGIN
  -- An administrator who is no superuser speaks as the owner the second time, who cannot grant to itself.
  IF NOT has_schema_privilege('gpubroker_owner', 'public', 'CREATE WITH GRANT OPTION') THEN
    GRANT USAGE, CREATE ON SCHEMA public TO gpubroker_owner WITH GRANT OPTION;
  END IF;
END $$;
GRANT USAGE ON SCHEMA public TO gpubroker_web, gpubroker_worker, gpubroker_staff, gpubroker_sweep, gpubroker_door;
REVOKE CREATE ON SCHEMA public FROM gpubroker_sweep, gpubroker_door;  -- databases of the first days had it
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO gpubroker_web, gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT SELECT ON TABLES TO gpubroker_staff, gpubroker_sweep, gpubroker_door;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT USAGE, SELECT ON SEQUENCES TO gpubroker_web, gpubroker_worker;
CREATE EXTENSION IF NOT EXISTS btree_gist;
