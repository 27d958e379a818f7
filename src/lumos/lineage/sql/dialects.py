"""What dialects allow that decides about the meaning of names."""

from typing import Final

_STRUCTS: Final = frozenset(
    {
        "athena", "bigquery", "clickhouse", "databricks", "dremio", "drill", "duckdb", "hive",
        "presto", "redshift", "spark", "spark2", "starrocks", "trino", "doris", "",
    }
)  # fmt: skip
_LATERAL_ALIASES: Final = frozenset(
    {"snowflake", "redshift", "databricks", "spark", "duckdb", "teradata", "clickhouse"}
)
_ALIASES_IN_WHERE: Final = frozenset({"snowflake", "teradata", "clickhouse", "duckdb", "redshift"})
_RECURSIVE_WITHOUT_KEYWORD: Final = frozenset(
    {"tsql", "fabric", "oracle", "snowflake", "sqlite", "teradata", "exasol", "db2", ""}
)
_NAMES_THROUGH_CASTS: Final = frozenset({"postgres", "redshift", "materialize", "risingwave"})
_PATHS_IN_FROM: Final = frozenset({"bigquery", "redshift"})


# What Oracle and its kin answer without a table, and what all do.
_PSEUDO: Final = frozenset(
    {
        "current_date", "current_timestamp", "current_time", "current_user", "session_user",
        "system_user", "localtime", "localtimestamp", "sysdate", "systimestamp",
        "default",
    }
)  # fmt: skip
_PSEUDO_OF_ORACLE: Final = frozenset(
    {
        "rownum", "level", "rowid", "user", "uid", "sqlcode", "sqlerrm", "connect_by_isleaf",
        "connect_by_iscycle", "ora_rowscn",
    }
)  # fmt: skip


class Habits:
    """The habits of one dialect; the empty name is standard SQL."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_structs = name in _STRUCTS
        self.has_lateral_aliases = name in _LATERAL_ALIASES
        self.has_aliases_in_where = name in _ALIASES_IN_WHERE
        self.recurses_without_keyword = name in _RECURSIVE_WITHOUT_KEYWORD
        self.has_paths_in_from = name in _PATHS_IN_FROM
        self.names_through_casts = name in _NAMES_THROUGH_CASTS
        self.names_through_brackets = self.names_through_casts or name == "duckdb"
        self.flattens = name == "snowflake"
        # Names that are no columns unless a table has them.
        self.pseudo_columns = _PSEUDO | (_PSEUDO_OF_ORACLE if name == "oracle" else frozenset())
