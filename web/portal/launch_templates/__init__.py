"""Pages of launch templates."""
