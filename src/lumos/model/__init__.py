"""Immutable values: types, schemas, datasets, URNs, changes, lineage edges and versions."""
