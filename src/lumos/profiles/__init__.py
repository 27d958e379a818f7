"""Profiles of datasets: measured on demand, kept as part of their quality."""
