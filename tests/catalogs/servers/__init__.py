"""Servers of the project's own that answer a catalog's documented routes: stubs, not catalogs."""
