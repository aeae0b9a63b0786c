"""State tables, prices and rules that decide what a placement costs."""
