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
_PATHS_IN_FROM: Final = frozenset({"bigquery", "redshift"})


class Habits:
    """The habits of one dialect; the empty name is standard SQL."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_structs = name in _STRUCTS
        self.has_lateral_aliases = name in _LATERAL_ALIASES
        self.has_aliases_in_where = name in _ALIASES_IN_WHERE
        self.recurses_without_keyword = name in _RECURSIVE_WITHOUT_KEYWORD
        self.has_paths_in_from = name in _PATHS_IN_FROM
