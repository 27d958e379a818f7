"""Frozen values: types, schemas, datasets, URNs, changes, edges and versions."""
