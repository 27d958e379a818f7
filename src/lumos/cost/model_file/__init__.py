"""A whole cost model in one file, computed without a store."""
