"""Hints that say which files form a dataset, overriding the automatic grouping."""
