"""GPU layouts: search for a demand, and steps that apply one."""
