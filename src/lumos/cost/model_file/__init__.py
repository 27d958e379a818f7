"""Cost models that are defined in one file and computed without a store."""
