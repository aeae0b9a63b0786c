-- Set up a database for the product: roles, passwords and privileges. Run by an administrator, with psql 15
-- or newer, connected to that database; again whenever passwords change. See docs/how-to/deploy.md.
--   OWNER_PASSWORD=… WEB_PASSWORD=… WORKER_PASSWORD=… psql -f deploy/database.sql 'postgresql://administrator@host/gpubroker'
\set ON_ERROR_STOP on
-- From the environment, since every user of a machine can read command lines.
\getenv owner OWNER_PASSWORD
\getenv web WEB_PASSWORD
\getenv worker WORKER_PASSWORD
SELECT (:{?owner} AND :{?web} AND :{?worker})::int AS given \gset
\if :given
\else
  \echo 'OWNER_PASSWORD, WEB_PASSWORD and WORKER_PASSWORD must be set: nobody may log in without a password. Nothing was changed.'
  SELECT 1/0 AS "set the three passwords and try again";
\endif
\ir roles.sql
ALTER ROLE gpubroker_owner PASSWORD :'owner';
ALTER ROLE gpubroker_web PASSWORD :'web';
ALTER ROLE gpubroker_worker PASSWORD :'worker';
ALTER DATABASE :"DBNAME" OWNER TO gpubroker_owner;
REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC, gpubroker_web, gpubroker_worker;
GRANT CONNECT ON DATABASE :"DBNAME" TO gpubroker_web, gpubroker_worker;
