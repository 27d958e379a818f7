"""What dbt leaves in its target folder: the manifest, the catalog, results and compiled SQL."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from lumos.errors import LumosError
from lumos.lineage.reported import Problem
from lumos.model.json_codec import decode_json

MANIFEST: Final = "manifest.json"
CATALOG: Final = "catalog.json"
RUN_RESULTS: Final = "run_results.json"
_OLDEST, _NEWEST = 4, 12
_VERSION: Final = re.compile(r"/manifest/v(\d+)")
_MAX_BYTES: Final = 2 * 1024**3

Part = TypeVar("Part", bound=msgspec.Struct)


class NoManifest(LumosError):
    """A manifest that is not there or cannot be read at all."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an artefact, whose other keys do not matter."""


class Column(_Part, frozen=True, kw_only=True):
    name: str = ""
    description: str | None = None
    data_type: str | None = None
    tags: Any = None
    config: Any = None


class DependsOn(_Part, frozen=True, kw_only=True):
    nodes: list[str] = []


class Config(_Part, frozen=True, kw_only=True):
    materialized: str | None = None
    enabled: Any = True
    meta: Any = None
    group: str | None = None


class Node(_Part, frozen=True, kw_only=True):
    """A model, seed, snapshot, source table or exposure, with the keys of all versions."""

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
    columns: dict[str, Column] | None = None
    config: Config | None = None
    meta: Any = None
    tags: Any = None
    group: str | None = None
    owner: Any = None
    url: str | None = None
    depends_on: DependsOn | None = None

    @property
    def compiled(self) -> str | None:
        """The SQL that runs, under the key of its version."""
        return self.compiled_code or self.compiled_sql

    @property
    def raw(self) -> str:
        """The SQL as it is written."""
        return self.raw_code or self.raw_sql or ""

    @property
    def materialized(self) -> str:
        return (self.config.materialized if self.config else None) or ""


class _Metadata(_Part, frozen=True, kw_only=True):
    dbt_schema_version: str = ""
    project_name: str | None = None
    adapter_type: str | None = None
    invocation_id: str | None = None
    generated_at: datetime | None = None


class CatalogColumn(_Part, frozen=True, kw_only=True):
    name: str
    type: str = ""
    index: Any = 0
    comment: str | None = None


class CatalogTable(_Part, frozen=True, kw_only=True):
    columns: dict[str, CatalogColumn] = {}

    @property
    def ordered(self) -> tuple[CatalogColumn, ...]:
        return tuple(
            sorted(self.columns.values(), key=lambda column: int(str(column.index or 0) or 0))
        )


class Timing(_Part, frozen=True, kw_only=True):
    name: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


class Result(_Part, frozen=True, kw_only=True):
    unique_id: str
    status: str = ""
    timing: list[Timing] = []
    message: str | None = None


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A dbt project as its artefacts tell it, and what is missing or wrong in them."""

    name: str
    adapter: str | None
    nodes: dict[str, Node]
    sources: dict[str, Node]
    exposures: dict[str, Node]
    groups: dict[str, Node]
    catalog: dict[str, CatalogTable]
    results: tuple[Result, ...]
    invocation: str
    run_at: datetime | None
    problems: tuple[Problem, ...]


def is_manifest(value: Any) -> bool:
    """Whether decoded JSON looks like a manifest."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    version = metadata.get("dbt_schema_version", "") if isinstance(metadata, dict) else ""
    return "/manifest/" in str(version) or (
        isinstance(value, dict) and isinstance(value.get("nodes"), dict) and "macros" in value
    )


def read_project(manifest: Path, *, name: str | None = None) -> Project:
    """The project of a manifest and of what lies beside it; `name` is its name in problems."""
    return _Reader(manifest, name or str(manifest)).project()


class _Reader:
    def __init__(self, manifest: Path, name: str) -> None:
        self._manifest = manifest
        self._folder = manifest.parent
        self._place = name
        self._problems: list[Problem] = []

    def project(self) -> Project:
        try:
            parts = decode_json(_content(self._manifest), dict[str, msgspec.Raw])
        except (OSError, msgspec.MsgspecError) as problem:
            raise NoManifest(f"{self._place} is no manifest of dbt: {problem}") from None
        metadata = self._part(parts, "metadata", _Metadata) or _Metadata()
        self._check(metadata)
        nodes = self._nodes(parts, "nodes")
        catalog = self._catalog()
        invocation, run_at, results = self._results()
        return Project(
            name=metadata.project_name or self._guessed_name(nodes),
            adapter=metadata.adapter_type,
            nodes={key: self._with_sql(key, node) for key, node in nodes.items()},
            sources=self._nodes(parts, "sources"),
            exposures=self._nodes(parts, "exposures"),
            groups=self._nodes(parts, "groups"),
            catalog=catalog,
            results=results,
            invocation=invocation,
            run_at=run_at,
            problems=tuple(self._problems),
        )

    def _check(self, metadata: _Metadata) -> None:
        found = _VERSION.search(metadata.dbt_schema_version)
        version = int(found.group(1)) if found else None
        if version is None or not _OLDEST <= version <= _NEWEST:
            what = "no version" if version is None else f"version {version}"
            self._remark(
                self._place,
                f"The manifest has {what}; versions {_OLDEST} to {_NEWEST} are known. "
                "What it says in their way is read.",
            )

    def _guessed_name(self, nodes: Mapping[str, Node]) -> str:
        """The package of the most models: older manifests do not name their project."""
        packages = [node.package_name for node in nodes.values() if node.resource_type == "model"]
        folder = self._folder.absolute()
        named = folder.parent.name if folder.name == "target" else folder.name
        return max(sorted(set(packages)), key=packages.count, default=named)

    def _nodes(self, parts: Mapping[str, msgspec.Raw], section: str) -> dict[str, Node]:
        found = parts.get(section)
        try:
            raw = decode_json(found, dict[str, msgspec.Raw]) if found else {}
        except msgspec.MsgspecError as problem:
            self._problem(self._place, f"The section '{section}' cannot be read: {problem}.")
            return {}
        nodes = {}
        for key, each in raw.items():
            try:
                node = decode_json(each, Node)
            except msgspec.MsgspecError as problem:
                self._problem(self._place, f"'{key}' cannot be read: {problem}.")
                continue
            # dbt has lists of nodes under one key where a node is switched off.
            if node.config is None or node.config.enabled is not False:
                nodes[key] = node
        return nodes

    def _with_sql(self, key: str, node: Node) -> Node:
        """A model with its compiled SQL, which lies in a file where the manifest has none."""
        if node.compiled or node.resource_type not in ("model", "snapshot"):
            return node
        relative = Path(node.package_name, node.original_file_path)
        file = self._folder / "compiled" / relative
        # A manifest names files wherever it likes, and only those of its own folder are meant.
        if not node.original_file_path or ".." in relative.parts or not file.is_file():
            return node
        try:
            return msgspec.structs.replace(node, compiled_code=file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            self._problem(str(file), f"The compiled SQL of '{key}' cannot be read: {problem}.")
            return node

    def _catalog(self) -> dict[str, CatalogTable]:
        parts = self._beside(CATALOG, "The types of columns are as far as models declare them")
        tables: dict[str, CatalogTable] = {}
        for section in ("nodes", "sources"):
            found = parts.get(section)
            try:
                raw = decode_json(found, dict[str, msgspec.Raw]) if found else {}
                for key, each in raw.items():
                    tables[key] = decode_json(each, CatalogTable)
            except msgspec.MsgspecError as problem:
                self._problem(str(self._folder / CATALOG), f"'{section}': {problem}.")
        return tables

    def _results(self) -> tuple[str, datetime | None, tuple[Result, ...]]:
        parts = self._beside(RUN_RESULTS, "No runs are recorded")
        metadata = self._part(parts, "metadata", _Metadata) or _Metadata()
        results: list[Result] = []
        found = parts.get("results")
        try:
            if found:
                results = decode_json(found, list[Result])
        except msgspec.MsgspecError as problem:
            self._problem(str(self._folder / RUN_RESULTS), f"'results': {problem}.")
        return metadata.invocation_id or "", utc(metadata.generated_at), tuple(results)

    def _beside(self, name: str, otherwise: str) -> dict[str, msgspec.Raw]:
        file = self._folder / name
        if not file.exists():
            self._remark(self._place, f"There is no {name} beside the manifest. {otherwise}.")
            return {}
        try:
            return decode_json(_content(file), dict[str, msgspec.Raw])
        except (OSError, msgspec.MsgspecError) as problem:
            self._problem(str(file), f"{name} cannot be read: {problem}. {otherwise}.")
            return {}

    def _part(self, parts: Mapping[str, msgspec.Raw], key: str, kind: type[Part]) -> Part | None:
        found = parts.get(key)
        try:
            return decode_json(found, kind) if found else None
        except msgspec.MsgspecError as problem:
            self._problem(self._place, f"'{key}' cannot be read: {problem}.")
            return None

    def _problem(self, place: str, reason: str) -> None:
        self._problems.append(Problem(place=place, reason=reason))

    def _remark(self, place: str, reason: str) -> None:
        self._problems.append(Problem(place=place, reason=reason, severity="remark"))


def _content(file: Path) -> bytes:
    if file.stat().st_size > _MAX_BYTES:
        raise NoManifest(f"{file} is larger than {_MAX_BYTES // 1024**3} GB.")
    return file.read_bytes()


def utc(time: datetime | None) -> datetime | None:
    """A time of dbt, which is UTC where it names no zone."""
    if time is None:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
