"""A tenant at its desk: somebody signed in, a fleet with prices, and time that moves only when told to."""
