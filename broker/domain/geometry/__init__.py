"""GPU models, MIG profiles and the partitioning of one GPU."""
