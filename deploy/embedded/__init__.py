"""PostgreSQL, Valkey and the product's processes on one machine, started by one command."""
