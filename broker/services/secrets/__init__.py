"""Saved secrets: stored encrypted, chosen by leases, read only for their provisioners."""
