"""Plans: what is measured on a machine that is there for a short time."""
