"""Portable snapshots: taking them, checking them, bringing them into catalogs, comparing them."""
