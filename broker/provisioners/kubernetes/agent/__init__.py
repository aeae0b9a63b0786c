"""Parts of the cluster agent: event buffer, heartbeat, drift repair."""
