-- Restrict credentials of clusters to the processes that talk to clusters.

REVOKE ALL ON broker_clustercredential FROM gpubroker_staff, gpubroker_system, gpubroker_auth;
