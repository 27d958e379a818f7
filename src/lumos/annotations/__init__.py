"""Annotations of datasets: descriptions, owners, tags, terms and properties."""
