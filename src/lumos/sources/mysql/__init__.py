"""MySQL and MariaDB as sources: reads their information schema, never the rows of their tables."""

from lumos.sources.mysql.source import MariadbSource, MysqlSource

__all__ = ["MariadbSource", "MysqlSource"]
