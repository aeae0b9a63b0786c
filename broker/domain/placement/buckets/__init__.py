"""Pool GPUs grouped by state, for constant-time slot search."""
