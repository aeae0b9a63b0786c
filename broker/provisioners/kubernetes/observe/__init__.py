"""What a lease's objects in the cluster say about the lease."""
