"""Profiles: what the rows of a dataset say of its columns, measured on Spark."""
