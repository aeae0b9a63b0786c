"""Readings of GPUs: units, validity, counters and faults."""
