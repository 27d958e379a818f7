"""A PostgreSQL database as a source: reads its catalog, never the rows of its tables."""

from lumos.sources.postgres.source import PostgresSource

__all__ = ["PostgresSource"]
