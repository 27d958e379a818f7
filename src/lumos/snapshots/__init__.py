"""Exports, validates, imports and compares portable snapshots."""
