"""The texts of differences between a metastore and storage."""

from typing import Final

KIND_TITLES: Final = {
    "data_without_table": "Data without a table",
    "files_outside_partitions": "Files outside of partitions",
    "format_difference": "Other format than declared",
    "nested_location": "Location inside that of another table",
    "partitions_missing": "Registered partitions without files",
    "partitions_unregistered": "Partitions that are not registered",
    "schema_difference": "Other columns than the files have",
    "shared_location": "Location of several tables",
    "stale_statistics": "Stale statistics",
    "table_without_data": "Tables without data",
}
