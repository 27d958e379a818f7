"""Whose types are meant where nobody says so."""

from typing import Final

from lumos.model.conversions.sql_text import Dialect

DIALECT_OF_PLATFORM: Final[dict[str, Dialect]] = {
    "postgres": "postgres",
    "redshift": "postgres",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "hive": "hive",
}
# Where neither the platform nor the user says which it is, the one that knows most types.
GUESSED_DIALECTS: Final[tuple[Dialect, ...]] = ("hive", "postgres", "snowflake", "bigquery")
