"""Profiles of datasets: column statistics that are measured on demand from the rows."""
