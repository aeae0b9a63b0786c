"""Placement of shares on GPUs that several tenants share."""
