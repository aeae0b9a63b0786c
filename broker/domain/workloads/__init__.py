"""Workload templates and the validation of what tenants run."""
