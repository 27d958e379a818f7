"""Pure computation on arrays: attribution along lineage, savings and retirement plans."""
