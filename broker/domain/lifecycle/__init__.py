"""States of leases, volumes and relocations, and the transitions between them."""
