"""Any database with an SQLAlchemy dialect as a source; reads its catalog, never its rows."""

from lumos.sources.sql.source import SqlSource

__all__ = ["SqlSource"]
