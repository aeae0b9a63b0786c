"""Client of the Kubernetes API: connection, retries, errors, object types."""
