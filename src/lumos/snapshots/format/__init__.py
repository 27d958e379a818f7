"""Portable snapshots: one documented format for all that is known of datasets."""
