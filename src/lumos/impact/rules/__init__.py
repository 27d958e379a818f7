"""Who breaks when a dataset changes, where, and why."""
