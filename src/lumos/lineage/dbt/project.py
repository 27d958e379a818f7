"""Reads a dbt project from its target folder: manifest, catalog, run results, compiled SQL."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import sqlglot.errors
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lumos.errors import LumosError, UnknownName
from lumos.lineage.reported_lineage import LineageProblem, TableName
from lumos.lineage.sql.dialects import NameFolding, find_dialect
from lumos.model.json_codec import decode_json

MANIFEST: Final = "manifest.json"
CATALOG: Final = "catalog.json"
RUN_RESULTS: Final = "run_results.json"
_OLDEST_VERSION, _NEWEST_VERSION = 4, 12
_VERSION: Final = re.compile(r"/manifest/v(\d+)")
_MAX_BYTES: Final = 2 * 1024**3

ObjectT = TypeVar("ObjectT", bound=msgspec.Struct)


class UnreadableManifest(LumosError):
    """A manifest that is missing or unreadable."""


class _DbtObject(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object in an artefact; unknown keys are ignored."""


class DbtColumn(_DbtObject, frozen=True, kw_only=True):
    name: str = ""
    description: str | None = None
    data_type: str | None = None
    tags: Any = None
    config: Any = None


class DbtDependencies(_DbtObject, frozen=True, kw_only=True):
    nodes: list[str] = []


class DbtConfig(_DbtObject, frozen=True, kw_only=True):
    materialized: str | None = None
    enabled: Any = True
    meta: Any = None
    group: str | None = None


class DbtNode(_DbtObject, frozen=True, kw_only=True):
    """A model, exposure, metric or the like, with the keys of all manifest versions."""

    name: str
    resource_type: str = ""
    package_name: str = ""
    database: str | None = None
    schema: str | None = None
    alias: str | None = None
    identifier: str | None = None
    relation_name: str | None = None
    original_file_path: str = ""
    compiled_path: str | None = None
    compiled_code: str | None = None
    compiled_sql: str | None = None
    raw_code: str | None = None
    raw_sql: str | None = None
    language: str | None = "sql"
    description: str | None = None
    columns: dict[str, DbtColumn] | None = None
    config: DbtConfig | None = None
    meta: Any = None
    tags: Any = None
    group: str | None = None
    owner: Any = None
    url: str | None = None
    label: str | None = None
    type: Any = None
    maturity: str | None = None
    type_params: Any = None
    filter: Any = None
    defaults: Any = None
    measures: Any = None
    dimensions: Any = None
    depends_on: DbtDependencies | None = None

    @property
    def compiled_text(self) -> str | None:
        """The compiled SQL."""
        return self.compiled_code or self.compiled_sql

    @property
    def raw_text(self) -> str:
        """The SQL before compilation."""
        return self.raw_code or self.raw_sql or ""

    @property
    def materialized(self) -> str:
        return (self.config.materialized if self.config else None) or ""


class _Metadata(_DbtObject, frozen=True, kw_only=True):
    dbt_schema_version: str = ""
    project_name: str | None = None
    adapter_type: str | None = None
    invocation_id: str | None = None
    generated_at: datetime | None = None


class DbtCatalogColumn(_DbtObject, frozen=True, kw_only=True):
    name: str
    type: str = ""
    index: Any = 0
    comment: str | None = None


class DbtCatalogTable(_DbtObject, frozen=True, kw_only=True):
    columns: dict[str, DbtCatalogColumn] = {}

    @property
    def sorted_columns(self) -> tuple[DbtCatalogColumn, ...]:
        return tuple(
            sorted(self.columns.values(), key=lambda column: int(str(column.index or 0) or 0))
        )


class DbtTiming(_DbtObject, frozen=True, kw_only=True):
    name: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


class DbtResult(_DbtObject, frozen=True, kw_only=True):
    unique_id: str
    status: str = ""
    timing: list[DbtTiming] = []
    message: str | None = None


class DbtProject(msgspec.Struct, frozen=True, kw_only=True):
    """A dbt project, and problems in its artefacts."""

    name: str
    adapter: str | None
    nodes: dict[str, DbtNode]
    sources: dict[str, DbtNode]
    exposures: dict[str, DbtNode]
    metrics: dict[str, DbtNode]
    semantic_models: dict[str, DbtNode]
    saved_queries: dict[str, DbtNode]
    groups: dict[str, DbtNode]
    catalog: dict[str, DbtCatalogTable]
    results: tuple[DbtResult, ...]
    invocation: str
    run_at: datetime | None
    problems: tuple[LineageProblem, ...]


def read_project(manifest: Path, *, name: str | None = None) -> DbtProject:
    """Read a manifest and the artefacts next to it; `name` is the manifest's name in problems."""
    return _ProjectReader(manifest, name or str(manifest)).read()


class _ProjectReader:
    def __init__(self, manifest: Path, name: str) -> None:
        self._manifest = manifest
        self._folder = manifest.parent
        self._name = name
        self._problems: list[LineageProblem] = []

    def read(self) -> DbtProject:
        try:
            sections = decode_json(_read_content(self._manifest), dict[str, msgspec.Raw])
        except (OSError, msgspec.MsgspecError) as problem:
            raise UnreadableManifest(f"{self._name} is not a dbt manifest: {problem}") from None
        metadata = self._section(sections, "metadata", _Metadata) or _Metadata()
        self._check_version(metadata)
        nodes = self._nodes(sections, "nodes")
        catalog = self._catalog()
        invocation, run_at, results = self._results()
        return DbtProject(
            name=metadata.project_name or self._guess_name(nodes),
            adapter=metadata.adapter_type,
            nodes={key: self._with_sql(key, node) for key, node in nodes.items()},
            sources=self._nodes(sections, "sources"),
            exposures=self._nodes(sections, "exposures"),
            metrics=self._nodes(sections, "metrics"),
            semantic_models=self._nodes(sections, "semantic_models"),
            saved_queries=self._nodes(sections, "saved_queries"),
            groups=self._nodes(sections, "groups"),
            catalog=catalog,
            results=results,
            invocation=invocation,
            run_at=run_at,
            problems=tuple(self._problems),
        )

    def _check_version(self, metadata: _Metadata) -> None:
        match = _VERSION.search(metadata.dbt_schema_version)
        version = int(match.group(1)) if match else None
        if version is None or not _OLDEST_VERSION <= version <= _NEWEST_VERSION:
            description = "no version" if version is None else f"version {version}"
            self._add_remark(
                self._name,
                f"The manifest has {description}; versions {_OLDEST_VERSION} to {_NEWEST_VERSION} "
                "are supported. The parts that Lumos knows are read.",
            )

    def _guess_name(self, nodes: Mapping[str, DbtNode]) -> str:
        """The package of most models, or else the folder, for older manifests without a name."""
        packages = [node.package_name for node in nodes.values() if node.resource_type == "model"]
        folder = self._folder.absolute()
        folder_name = folder.parent.name if folder.name == "target" else folder.name
        return max(sorted(set(packages)), key=packages.count, default=folder_name)

    def _nodes(self, sections: Mapping[str, msgspec.Raw], section: str) -> dict[str, DbtNode]:
        raw = sections.get(section)
        try:
            raw_nodes = decode_json(raw, dict[str, msgspec.Raw]) if raw else {}
        except msgspec.MsgspecError as problem:
            self._add_problem(self._name, f"The section '{section}' cannot be read: {problem}.")
            return {}
        nodes = {}
        for key, each in raw_nodes.items():
            try:
                node = decode_json(each, DbtNode)
            except msgspec.MsgspecError as problem:
                self._add_problem(self._name, f"'{key}' cannot be read: {problem}.")
                continue
            # A disabled node may be a list of nodes under one key.
            if node.config is None or node.config.enabled is not False:
                nodes[key] = node
        return nodes

    def _with_sql(self, key: str, node: DbtNode) -> DbtNode:
        """Add the compiled SQL of a model, from a file if the manifest does not contain it."""
        if node.compiled_text or node.resource_type not in ("model", "snapshot"):
            return node
        relative = Path(node.package_name, node.original_file_path)
        file = self._folder / "compiled" / relative
        # The manifest may contain any path, so only files inside of its own folder are read.
        if not node.original_file_path or ".." in relative.parts or not file.is_file():
            return node
        try:
            return msgspec.structs.replace(node, compiled_code=file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            self._add_problem(str(file), f"The compiled SQL of '{key}' cannot be read: {problem}.")
            return node

    def _catalog(self) -> dict[str, DbtCatalogTable]:
        sections = self._sibling(
            CATALOG, "Column types are only known as far as models declare them"
        )
        tables: dict[str, DbtCatalogTable] = {}
        for section in ("nodes", "sources"):
            raw = sections.get(section)
            try:
                raw_tables = decode_json(raw, dict[str, msgspec.Raw]) if raw else {}
                for key, each in raw_tables.items():
                    tables[key] = decode_json(each, DbtCatalogTable)
            except msgspec.MsgspecError as problem:
                self._add_problem(str(self._folder / CATALOG), f"'{section}': {problem}.")
        return tables

    def _results(self) -> tuple[str, datetime | None, tuple[DbtResult, ...]]:
        sections = self._sibling(RUN_RESULTS, "No runs are recorded")
        metadata = self._section(sections, "metadata", _Metadata) or _Metadata()
        results: list[DbtResult] = []
        raw = sections.get("results")
        try:
            if raw:
                results = decode_json(raw, list[DbtResult])
        except msgspec.MsgspecError as problem:
            self._add_problem(str(self._folder / RUN_RESULTS), f"'results': {problem}.")
        return metadata.invocation_id or "", utc(metadata.generated_at), tuple(results)

    def _sibling(self, name: str, consequence: str) -> dict[str, msgspec.Raw]:
        """The sections of an artefact next to the manifest.

        `consequence` is added to the problem if the artefact is missing or cannot be read.
        """
        file = self._folder / name
        if not file.exists():
            self._add_remark(self._name, f"There is no {name} next to the manifest. {consequence}.")
            return {}
        try:
            return decode_json(_read_content(file), dict[str, msgspec.Raw])
        except (OSError, msgspec.MsgspecError) as problem:
            self._add_problem(str(file), f"{name} cannot be read: {problem}. {consequence}.")
            return {}

    def _section(
        self, sections: Mapping[str, msgspec.Raw], key: str, kind: type[ObjectT]
    ) -> ObjectT | None:
        raw = sections.get(key)
        try:
            return decode_json(raw, kind) if raw else None
        except msgspec.MsgspecError as problem:
            self._add_problem(self._name, f"'{key}' cannot be read: {problem}.")
            return None

    def _add_problem(self, file: str, reason: str) -> None:
        self._problems.append(LineageProblem(place=file, reason=reason))

    def _add_remark(self, file: str, reason: str) -> None:
        self._problems.append(LineageProblem(place=file, reason=reason, severity="remark"))


def _read_content(file: Path) -> bytes:
    if file.stat().st_size > _MAX_BYTES:
        raise UnreadableManifest(f"{file} is larger than {_MAX_BYTES // 1024**3} GB.")
    return file.read_bytes()


def utc(time: datetime | None) -> datetime | None:
    """Convert a time from dbt to UTC; a time without a zone is UTC already."""
    if time is None:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


# Adapters whose name differs from the platform's name.
_PLATFORMS: Final = {
    "alloydb": "postgres",
    "databricks-sql": "databricks",
    "fabric": "mssql",
    "greenplum": "postgres",
    "sqlserver": "mssql",
    "synapse": "mssql",
}
_EPHEMERAL: Final = "ephemeral"
_TABLE_TYPES: Final = ("model", "seed", "snapshot", "source")


class DbtRelations:
    """The tables of a project's nodes, by unique id."""

    def __init__(self, project: DbtProject) -> None:
        self._project = project
        self._folding = NameFolding(self.dialect)
        adapter = (project.adapter or "").lower()
        # The platform of all tables.
        self.platform = _PLATFORMS.get(adapter, adapter) or None

    @cached_property
    def dialect_name(self) -> str | None:
        """The name of the project's SQL dialect, if known."""
        try:
            find_dialect(self._project.adapter)
        except UnknownName:
            return None
        return self._project.adapter

    @property
    def dialect(self) -> Dialect:
        """The project's SQL dialect, or the standard one."""
        return find_dialect(self.dialect_name)

    def sql_name(self, table: TableName) -> str:
        """A table name in the project's dialect."""
        identifiers = (exp.to_identifier(part, quoted=True) for part in table.parts)
        return ".".join(each.sql(dialect=self.dialect) for each in identifiers)

    def table(self, key: str) -> TableName | None:
        """The table of a node; None for nodes without one, such as ephemeral models and tests."""
        node = self._node(key)
        if (
            node is None
            or resource_type(key, node) not in _TABLE_TYPES
            or node.materialized == _EPHEMERAL
        ):
            return None
        parts = self._split_relation_name(node.relation_name) or self._table_parts(node)
        return TableName(parts=parts, platform=self.platform)

    def upstream(self, key: str) -> tuple[TableName, ...]:
        """The tables that a node depends on, directly or through ephemeral models."""
        tables: dict[TableName, None] = {}
        visited = {key}
        queue = list(self._depends_on(key))
        while queue:
            each = queue.pop(0)
            if each in visited:
                continue
            visited.add(each)
            if (table := self.table(each)) is not None:
                tables[table] = None
            else:
                queue += self._depends_on(each)
        return tuple(tables)

    def columns(self) -> dict[tuple[str, ...], dict[str, str]]:
        """The names and types of the columns of all tables, from the catalog or from the models."""
        tables: dict[tuple[str, ...], dict[str, str]] = {}
        for key in (*self._project.nodes, *self._project.sources):
            table = self.table(key)
            if table is not None and (columns := self._columns(key)):
                tables[table.parts] = columns
        return tables

    def _columns(self, key: str) -> dict[str, str]:
        catalog = self._project.catalog.get(key)
        if catalog is not None and catalog.columns:
            return {
                self._folding.text(column.name, quoted=True): column.type
                for column in catalog.sorted_columns
            }
        node = self._node(key)
        declared_columns = (node.columns if node else None) or {}
        # A list of described columns may be incomplete; one with types is complete.
        if not declared_columns or not all(
            column.data_type for column in declared_columns.values()
        ):
            return {}
        return {
            self._folding.text(column.name or name, quoted=True): column.data_type or ""
            for name, column in declared_columns.items()
        }

    def _node(self, key: str) -> DbtNode | None:
        return self._project.nodes.get(key) or self._project.sources.get(key)

    def _depends_on(self, key: str) -> Iterator[str]:
        node = self._node(key) or self._project.exposures.get(key)
        if node is not None and node.depends_on is not None:
            yield from node.depends_on.nodes

    def _split_relation_name(self, name: str | None) -> tuple[str, ...]:
        if not name:
            return ()
        try:
            return self._folding.table(exp.to_table(name, dialect=self.dialect))
        except sqlglot.errors.SqlglotError:
            return ()

    def _table_parts(self, node: DbtNode) -> tuple[str, ...]:
        parts = (node.database, node.schema, node.identifier or node.alias or node.name)
        return tuple(self._folding.text(part, quoted=True) for part in parts if part)


def resource_type(key: str, node: DbtNode) -> str:
    """The resource type of a node, which older manifests only have in its unique id."""
    return node.resource_type or key.partition(".")[0]
