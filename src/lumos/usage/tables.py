"""Resolves tables in query logs to datasets and their columns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lumos.lineage.name_index import NameIndex
from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    Resolution,
    ResolutionMethod,
    TableName,
    UrnReference,
)
from lumos.model.urn import InvalidUrn, Urn
from lumos.store import Store
from lumos.usage.query_log.analysis import TableAccess, possible_tables
from lumos.usage.query_log.reader import StatementExample
from lumos.usage.reports import UnknownTable

_RESOLVED_METHODS: Final = frozenset(
    {ResolutionMethod.URN, ResolutionMethod.RULE, ResolutionMethod.LOCATION, ResolutionMethod.NAME}
)
# System schemas and tables, which tools query constantly.
_SYSTEM_SCHEMAS: Final = frozenset(
    {"information_schema", "pg_catalog", "account_usage", "pg_toast", "performance_schema"}
)
_SYSTEM_TABLE_PREFIXES: Final = ("pg_", "svv_", "stl_", "stv_", "svl_", "sys_")
_URI_PREFIXES: Final = {"file": "/", "s3": "s3://", "gcs": "gs://", "hdfs": "hdfs://"}


class LogTables:
    """Finds the datasets of a log and collects unknown tables."""

    def __init__(self, store: Store, names: NameIndex) -> None:
        self._store = store
        self._names = names
        self._column_names: dict[str, dict[str, str]] = {}
        self._unknown: Counter[DatasetReference] = Counter()
        self._resolutions: dict[DatasetReference, Resolution] = {}

    def find(self, reference: DatasetReference, dialect: str | None) -> Resolution | None:
        """The dataset of a reference; None for system tables."""
        if isinstance(reference, TableName) and _is_system_table(reference.parts):
            return None
        resolution = self._names.find(reference, dialect=dialect)
        self._resolutions[reference] = resolution
        return resolution

    def is_known(self, resolution: Resolution) -> bool:
        """Whether the store has the dataset."""
        return resolution.method in _RESOLVED_METHODS and resolution.urn in self._names

    def __contains__(self, urn: str) -> bool:
        """Whether a URN belongs to a known dataset."""
        return urn in self._names

    def columns(
        self, examples: Iterable[StatementExample]
    ) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The columns of all datasets that statements may mention, by table name."""
        urns_by_table: dict[tuple[str, ...], str] = {}
        for example in examples:
            for parts in possible_tables(example):
                if parts not in urns_by_table and not _is_system_table(parts):
                    table = TableName(parts=parts, platform=example.platform)
                    resolution = self._names.find(table, dialect=example.dialect)
                    if self.is_known(resolution):
                        urns_by_table[parts] = resolution.urn
        self._load_columns(set(urns_by_table.values()))
        return {
            parts: tuple(self._column_names[urn].values())
            for parts, urn in urns_by_table.items()
            if self._column_names.get(urn)
        }

    def in_original_case(self, urn: str, columns: Iterable[str]) -> tuple[str, ...]:
        """Column names in the case that the dataset uses."""
        if urn not in self._column_names:
            self._load_columns({urn})
        names_by_lower_case = self._column_names[urn]
        return tuple(dict.fromkeys(names_by_lower_case.get(name.lower(), name) for name in columns))

    def add_unknown(self, access: TableAccess, times: int) -> None:
        """Record reads of an unknown table."""
        self._unknown[access.table] += times

    def unknown(self, limit: int) -> tuple[int, tuple[UnknownTable, ...]]:
        """The number of unknown tables, and the most read of them."""
        most_read = tuple(
            UnknownTable(
                name=_display_name(reference),
                urn=self._resolutions[reference].urn,
                reads=reads,
                candidates=self._resolutions[reference].candidates,
            )
            for reference, reads in self._unknown.most_common(limit)
        )
        return len(self._unknown), most_read

    def current_datasets(self, urns: Iterable[str]) -> Mapping[str, str]:
        """The datasets that assumed URNs now refer to."""
        current: dict[str, str] = {}
        for urn in urns:
            reference = _reference(urn)
            if reference is None:
                continue
            resolution = self._names.find(reference)
            if resolution.urn != urn and self.is_known(resolution):
                current[urn] = resolution.urn
        return current

    def _load_columns(self, urns: set[str]) -> None:
        new = urns - self._column_names.keys()
        schemas = self._store.schemas.current(new)
        for urn in new:
            fields = schemas[urn].fields if urn in schemas else ()
            self._column_names[urn] = {field.name.lower(): field.name for field in fields}


def _is_system_table(parts: Sequence[str]) -> bool:
    is_unqualified = len(parts) == 1 or parts[-2] == "public"
    return not _SYSTEM_SCHEMAS.isdisjoint(parts[:-1]) or (
        is_unqualified and parts[-1].startswith(_SYSTEM_TABLE_PREFIXES)
    )


def _display_name(reference: DatasetReference) -> str:
    match reference:
        case TableName(parts=parts):
            return ".".join(parts)
        case LocationReference(uri=uri):
            return uri
        case UrnReference(urn=urn):
            return urn


def _reference(urn: str) -> DatasetReference | None:
    """The reference that an assumed URN was derived from."""
    try:
        parsed = Urn.parse(urn)
    except InvalidUrn:
        return None
    if parsed.platform in _URI_PREFIXES:
        return LocationReference(uri=_URI_PREFIXES[parsed.platform] + "/".join(parsed.path))
    if parsed.platform == "azure" and parsed.instance:
        container, *key = parsed.path
        host = f"{container}@{parsed.instance}.dfs.core.windows.net"
        return LocationReference(uri="/".join((f"abfss://{host}", *key)))
    return TableName(
        parts=parsed.path,
        platform=None if parsed.platform == "sql" else parsed.platform,
        instance=parsed.instance or None,
    )
