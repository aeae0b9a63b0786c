-- PostgreSQL roles of the product. Run once per database by an administrator, before migrating.
-- Idempotent; passwords of the three logins are set by whoever runs this (ALTER ROLE … PASSWORD …).
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_owner') THEN
    CREATE ROLE gpubroker_owner LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  -- NOINHERIT: membership grants nothing until a transaction runs SET LOCAL ROLE, and only until it ends.
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_web') THEN
    CREATE ROLE gpubroker_web LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_worker') THEN
    CREATE ROLE gpubroker_worker LOGIN NOINHERIT NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_staff') THEN
    CREATE ROLE gpubroker_staff NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_system') THEN
    CREATE ROLE gpubroker_system NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpubroker_auth') THEN
    CREATE ROLE gpubroker_auth NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
END $$;
-- An administrator who is not a superuser needs membership to act for the owner and to give it the database.
GRANT gpubroker_owner TO CURRENT_USER;
GRANT gpubroker_staff, gpubroker_system, gpubroker_auth TO gpubroker_web, gpubroker_worker;
-- The owner gives views to the sweep role, so that a view sees what that role may see.
GRANT gpubroker_system, gpubroker_auth TO gpubroker_owner;
-- Only the owner creates objects. To give a view or function away, a migration grants CREATE temporarily.
DO $$
BEGIN
  -- On a second run an administrator who is not a superuser acts as the owner, who cannot grant to itself.
  IF NOT has_schema_privilege('gpubroker_owner', 'public', 'CREATE WITH GRANT OPTION') THEN
    GRANT USAGE, CREATE ON SCHEMA public TO gpubroker_owner WITH GRANT OPTION;
  END IF;
END $$;
GRANT USAGE ON SCHEMA public TO gpubroker_web, gpubroker_worker, gpubroker_staff, gpubroker_system, gpubroker_auth;
REVOKE CREATE ON SCHEMA public FROM gpubroker_system, gpubroker_auth;  -- early databases had it
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO gpubroker_web, gpubroker_worker;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT SELECT ON TABLES TO gpubroker_staff, gpubroker_system, gpubroker_auth;
ALTER DEFAULT PRIVILEGES FOR ROLE gpubroker_owner IN SCHEMA public
  GRANT USAGE, SELECT ON SEQUENCES TO gpubroker_web, gpubroker_worker;
CREATE EXTENSION IF NOT EXISTS btree_gist;
