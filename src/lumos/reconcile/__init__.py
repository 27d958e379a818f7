"""Compares the tables of a metastore with the data in storage."""
