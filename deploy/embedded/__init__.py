"""PostgreSQL, Valkey and the product's processes on one machine, from one command."""
