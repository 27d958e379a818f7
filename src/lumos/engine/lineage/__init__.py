"""Lineage from files into the store: recognised, names found, recorded and reported."""
