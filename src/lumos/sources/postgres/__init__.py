"""A PostgreSQL database as a source of datasets: read from its catalog, never from its tables."""

from lumos.sources.postgres.source import PostgresSource

__all__ = ["PostgresSource"]
