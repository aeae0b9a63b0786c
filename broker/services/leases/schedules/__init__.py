"""Lease schedules: saved requests, and the leases that they request when due."""
