"""Migrates the contents of a catalog to another one."""
