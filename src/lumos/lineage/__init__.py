"""Lineage between datasets and columns: readers, name resolution, storage, views and drawings."""
