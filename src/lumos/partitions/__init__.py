"""Partitions of datasets over time: rows, bytes and missing days."""
