"""Cost: what was spent, attributed along lineage, and what could be saved."""
