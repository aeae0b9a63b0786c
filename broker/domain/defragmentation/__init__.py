"""Plans of relocations that free whole GPUs or make room for a lease."""
