"""Reads exports of Superset: a ZIP file or folder with dashboards, charts, datasets and databases.

Superset stores no SQL for a chart: Lumos builds it from the chart's columns, metrics and filters,
as Superset does.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from lumos.annotations.owner_names import owner_texts, parse_owners
from lumos.config.yaml_tree import MAX_BYTES, ConfigurationError
from lumos.errors import LumosError
from lumos.lineage.consumers import (
    Consumer,
    ConsumerExport,
    consumer_reference,
    consumer_table,
    engine_name,
    make_entity,
)
from lumos.lineage.reported_lineage import LineageProblem, ReportedEdge, TableName
from lumos.lineage.sql.dialects import quote_name
from lumos.lineage.yaml_file import UnreadableDocument, YamlFile, mappings_in, text_at
from lumos.model.catalog import entity_urn
from lumos.model.lineage import ColumnUse, UseKind

METADATA_FILE: Final = "metadata.yaml"
_TOOL: Final = "superset"
_FOLDERS: Final = ("dashboards", "charts", "datasets", "databases")
_MAX_FILES: Final = 20_000
_MAX_TOTAL_BYTES: Final = 256 * 1024**2
# Keys of a chart's parameters; those of a second query end with _b.
_COLUMN_KEYS: Final = (
    "groupby", "columns", "all_columns", "x_axis", "series", "entity", "source", "target",
    "groupbyRows", "groupbyColumns", "granularity_sqla", "all_columns_x", "all_columns_y",
)  # fmt: skip
_METRIC_KEYS: Final = (
    "metrics", "metric", "metric_2", "percent_metrics", "secondary_metric", "size", "x", "y",
    "timeseries_limit_metric",
)  # fmt: skip
_FILTER_KEY: Final = "adhoc_filters"
# The filters and display controls of a dashboard.
_FILTER_LISTS: Final = ("native_filter_configuration", "chart_customization_config")
# A value under any other key is treated as a column if the dataset has a column of that name. Keys
# with these suffixes are left out, since a text that is only displayed may equal such a name.
_DISPLAY_SUFFIXES: Final = ("_title", "_label", "_format", "_text", "_color")
_JINJA: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)


class UnreadableExport(LumosError):
    """An export that cannot be read."""


def is_export(file: Path) -> bool:
    """Whether a ZIP file is an export of Superset."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [PurePosixPath(each.filename).parts for each in archive.infolist()[:_MAX_FILES]]
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    has_content = any(part in _FOLDERS for name in names for part in name[:-1][:2])
    return has_content and any(name[-1:] == (METADATA_FILE,) for name in names)


def is_metadata(file: Path) -> bool:
    """Whether a file is the metadata.yaml of an unpacked export."""
    folders = (file.parent / each for each in _FOLDERS)
    return file.name == METADATA_FILE and any(folder.is_dir() for folder in folders)


def is_part_of_export(file: Path) -> bool:
    """Whether a file is read together with the metadata.yaml of its export."""
    return any(
        folder.name in _FOLDERS and (folder.parent / METADATA_FILE).is_file()
        for folder in file.absolute().parents[:2]
    )


def report_export(file: Path, *, name: str) -> ConsumerExport:
    """The charts and dashboards of a ZIP file, or of the folder of a metadata.yaml."""
    if file.name == METADATA_FILE:
        contents, root = _read_folder(file.parent), str(PurePosixPath(name).parent)
        reporter = f"superset:{name}"
    else:
        contents, root, reporter = _read_zip(file), name, f"superset:{name}"
    return _Export(contents, root, reporter).read()


def _read_zip(file: Path) -> dict[str, bytes]:
    """The YAML files of an archive; reading is limited, since sizes in headers may be wrong."""
    contents: dict[str, bytes] = {}
    total = 0
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [each for each in archive.infolist() if not each.is_dir()]
            if len(entries) > _MAX_FILES:
                raise UnreadableExport(f"It contains more than {_MAX_FILES:,} files.")
            for entry in entries:
                path = _path_in_export(PurePosixPath(entry.filename))
                if path is None:
                    continue
                with archive.open(entry) as stream:
                    contents[path] = stream.read(MAX_BYTES + 1)
                total += len(contents[path])
                if total > _MAX_TOTAL_BYTES:
                    raise UnreadableExport(
                        f"It contains more than {_MAX_TOTAL_BYTES // 1024**2} MB."
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as problem:
        raise UnreadableExport(f"The ZIP file cannot be read: {problem}.") from None
    except (NotImplementedError, RuntimeError):
        # An encrypted file, or an unknown compression.
        raise UnreadableExport(
            "The ZIP file is encrypted or uses an unsupported compression."
        ) from None
    return contents


def _read_folder(folder: Path) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for name in _FOLDERS:
        for file in sorted((folder / name).rglob("*.yaml"))[:_MAX_FILES]:
            with file.open("rb") as stream:
                contents[file.relative_to(folder).as_posix()] = stream.read(MAX_BYTES + 1)
    return contents


def _path_in_export(path: PurePosixPath) -> str | None:
    """The path below the root of an export; None for files that are not read."""
    for number, part in enumerate(path.parts[:2]):
        if part in _FOLDERS and path.suffix == ".yaml":
            return "/".join(path.parts[number:])
    return None


class _Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A table or, with SQL, a virtual dataset.

    `columns` and `metrics` are the expressions of calculated columns and saved metrics, by name.
    """

    uuid: str
    name: str
    schema: str | None
    catalog: str | None
    sql: str | None
    engine: str | None
    columns: dict[str, str]
    metrics: dict[str, str]
    column_names: frozenset[str]
    document: YamlFile
    file: str

    @property
    def urn(self) -> str:
        """The URN of a virtual dataset."""
        return entity_urn("virtual_dataset", _TOOL, self.uuid)

    @property
    def table(self) -> str:
        """The dataset in the FROM clause of a chart."""
        if self.sql is not None:
            return consumer_table(self.urn)
        return ".".join(self.quote(part) for part in self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self.catalog, self.schema, self.name) if part)

    def quote(self, name: str) -> str:
        probe = Consumer(entity=make_entity("chart", _TOOL, "x", name="x"), engine=self.engine)
        return quote_name(name, probe.dialect)

    def column(self, name: str) -> str:
        """The SQL of a column, which may be calculated."""
        return self.columns.get(name) or self.quote(name)


class _Export:
    def __init__(self, contents: Mapping[str, bytes], root: str, reporter: str) -> None:
        self._root = root
        self._reporter = reporter
        self._problems: list[LineageProblem] = []
        self._documents: dict[str, dict[str, YamlFile]] = {each: {} for each in _FOLDERS}
        for path, content in contents.items():
            file = f"{root}/{path}"
            try:
                document = YamlFile(content, name=file)
            except ConfigurationError as error:
                for each in error.problems:
                    line = each.position.line
                    self._problems.append(LineageProblem(place=file, line=line, reason=each.text))
            except UnreadableDocument as error:
                self._problems.append(LineageProblem(place=file, reason=str(error)))
            else:
                self._documents[path.partition("/")[0]][file] = document

    def read(self) -> ConsumerExport:
        engines = {
            text_at(each.value, "uuid"): _engine(text_at(each.value, "sqlalchemy_uri"))
            for each in self._documents["databases"].values()
        }
        datasets = {
            each.uuid: each
            for file, document in self._documents["datasets"].items()
            if (each := self._dataset(file, document, engines)) is not None
        }
        consumers = [
            self._virtual_dataset(each) for each in datasets.values() if each.sql is not None
        ]
        charts = set()
        for file, document in self._documents["charts"].items():
            if (uuid := text_at(document.value, "uuid")) is None:
                self._add_remark(file, "The chart has no uuid and is left out.")
                continue
            charts.add(uuid)
            consumers.append(self._chart(uuid, file, document, datasets))
        for file, document in self._documents["dashboards"].items():
            if (uuid := text_at(document.value, "uuid")) is None:
                self._add_remark(file, "The dashboard has no uuid and is left out.")
                continue
            consumers.append(self._dashboard(uuid, file, document, charts, datasets))
        return ConsumerExport(
            reporter=self._reporter, consumers=tuple(consumers), problems=tuple(self._problems)
        )

    def _dataset(
        self, file: str, document: YamlFile, engines: Mapping[str | None, str | None]
    ) -> _Dataset | None:
        value = document.value
        uuid, name = text_at(value, "uuid"), text_at(value, "table_name")
        if uuid is None or name is None:
            self._add_remark(file, "The dataset has no uuid or table_name and is left out.")
            return None
        return _Dataset(
            uuid=uuid,
            name=name,
            schema=text_at(value, "schema"),
            catalog=text_at(value, "catalog"),
            sql=text_at(value, "sql"),
            engine=engines.get(text_at(value, "database_uuid")),
            columns=dict(_expressions(value.get("columns"), "column_name")),
            metrics=dict(_expressions(value.get("metrics"), "metric_name")),
            column_names=frozenset(
                name
                for _, each in mappings_in(value.get("columns"))
                if (name := text_at(each, "column_name")) is not None
            ),
            document=document,
            file=file,
        )

    def _virtual_dataset(self, dataset: _Dataset) -> Consumer:
        return Consumer(
            entity=make_entity(
                "virtual_dataset",
                _TOOL,
                dataset.uuid,
                name=dataset.name,
                description=text_at(dataset.document.value, "description"),
                owners=parse_owners(owner_texts(dataset.document.value.get("owners"))),
                file=dataset.file,
            ),
            sql=_without_jinja(dataset.sql or ""),
            file=dataset.file,
            line=dataset.document.line("sql"),
            engine=dataset.engine,
        )

    def _chart(
        self, uuid: str, file: str, document: YamlFile, datasets: Mapping[str, _Dataset]
    ) -> Consumer:
        value = document.value
        entity = make_entity(
            "chart",
            _TOOL,
            uuid,
            name=text_at(value, "slice_name") or uuid,
            description=text_at(value, "description"),
            owners=parse_owners(owner_texts(value.get("owners"))),
            certified_by=text_at(value, "certified_by"),
            file=file,
        )
        dataset = datasets.get(text_at(value, "dataset_uuid") or "")
        if dataset is None:
            self._add_remark(file, f"The dataset of the chart '{entity.display_name}' is missing.")
            return Consumer(entity=entity, file=file)
        sql = _chart_sql(_parameters(value.get("params")), dataset)
        upstream = (
            TableName(parts=dataset.parts)
            if dataset.sql is None
            else consumer_reference(dataset.urn)
        )
        edge = ReportedEdge(upstream=upstream, downstream=consumer_reference(entity.urn))
        return Consumer(
            entity=entity,
            sql=sql,
            file=file,
            line=document.line("params"),
            engine=dataset.engine,
            edges=() if sql is not None else (edge,),
        )

    def _dashboard(
        self,
        uuid: str,
        file: str,
        document: YamlFile,
        charts: set[str],
        datasets: Mapping[str, _Dataset],
    ) -> Consumer:
        value = document.value
        entity = make_entity(
            "dashboard",
            _TOOL,
            uuid,
            name=text_at(value, "dashboard_title") or uuid,
            description=text_at(value, "description"),
            owners=parse_owners(owner_texts(value.get("owners"))),
            certified_by=text_at(value, "certified_by"),
            slug=text_at(value, "slug"),
            file=file,
        )
        reference = consumer_reference(entity.urn)
        position = value.get("position")
        edges = []
        for each in position.values() if isinstance(position, dict) else ():
            chart = text_at(each, "meta", "uuid")
            if chart is None or text_at(each, "type") != "CHART":
                continue
            if chart not in charts:
                name = text_at(each, "meta", "sliceName") or chart
                self._add_remark(file, f"The chart '{name}' of the dashboard is missing.")
                continue
            upstream = consumer_reference(entity_urn("chart", _TOOL, chart))
            edges.append(ReportedEdge(upstream=upstream, downstream=reference))
        for key in _FILTER_LISTS:
            line = document.line("metadata", key)
            edges += (
                msgspec.structs.replace(each, downstream=reference)
                for each in _filter_edges(value.get("metadata"), key, datasets, file, line)
            )
        return Consumer(entity=entity, file=file, edges=tuple(edges))

    def _add_remark(self, file: str, reason: str) -> None:
        self._problems.append(LineageProblem(place=file, reason=reason, severity="remark"))


def _filter_edges(
    metadata: Any, key: str, datasets: Mapping[str, _Dataset], file: str, line: int | None
) -> Iterator[ReportedEdge]:
    """The columns that the filters of a dashboard read."""
    filters = metadata.get(key) if isinstance(metadata, dict) else None
    for _, each in mappings_in(filters):
        for _, target in mappings_in(each.get("targets")):
            dataset = datasets.get(text_at(target, "datasetUuid") or "")
            column = text_at(target, "column", "name")
            if dataset is None or column is None:
                continue
            use = ColumnUse(upstream=column, usage=UseKind.FILTER, file=file, line=line)
            reference = consumer_reference(dataset.urn)
            upstream = TableName(parts=dataset.parts) if dataset.sql is None else reference
            yield ReportedEdge(upstream=upstream, downstream=reference, uses=(use,))


def _chart_sql(parameters: Mapping[str, Any], dataset: _Dataset) -> str | None:
    """The query of a chart, without limits and values; None if it names no columns."""
    columns: dict[str, str] = {}
    conditions: dict[str, None] = {}
    dimensions: dict[str, None] = {}
    for suffix in ("", "_b"):
        for key in _COLUMN_KEYS:
            for each in _as_list(parameters.get(f"{key}{suffix}")):
                if (sql := _column_sql(each, dataset)) is not None:
                    dimensions[sql] = None
                    columns.setdefault(sql, _label(each))
        for key in _METRIC_KEYS:
            for each in _as_list(parameters.get(f"{key}{suffix}")):
                if (sql := _metric_sql(each, dataset)) is not None:
                    columns.setdefault(sql, _label(each))
        for _, each in mappings_in(parameters.get(f"{_FILTER_KEY}{suffix}")):
            if (sql := _filter_sql(each, dataset)) is not None:
                conditions[sql] = None
    for name in _other_names(parameters, dataset):
        if name in dataset.column_names:
            dimensions[dataset.column(name)] = None
            columns.setdefault(dataset.column(name), name)
        else:
            columns.setdefault(dataset.metrics[name], name)
    if not columns and not conditions:
        return None
    projections = (f"{sql} AS {dataset.quote(label)}" for sql, label in columns.items())
    query = f"SELECT {', '.join(projections) or '1 AS one'} FROM {dataset.table}"
    if conditions:
        query += f" WHERE {' AND '.join(f'({each})' for each in conditions)}"
    if dimensions and len(dimensions) < len(columns):
        query += f" GROUP BY {', '.join(dimensions)}"
    return query


def _other_names(parameters: Mapping[str, Any], dataset: _Dataset) -> Iterator[str]:
    """Columns and saved metrics under keys that only some kinds of charts have."""
    known_keys = {
        f"{key}{suffix}" for key in (*_COLUMN_KEYS, *_METRIC_KEYS) for suffix in ("", "_b")
    }
    for key, value in parameters.items():
        if key in known_keys or key.endswith(_DISPLAY_SUFFIXES):
            continue
        # Maps have `spatial: {latCol: latitude, lonCol: longitude}`.
        for each in value.values() if isinstance(value, dict) else _as_list(value):
            if isinstance(each, str) and (each in dataset.column_names or each in dataset.metrics):
                yield each


def _label(value: Any) -> str:
    """The name of a column or metric in the result of a chart."""
    if isinstance(value, str):
        return value
    return text_at(value, "label") or text_at(value, "column", "column_name") or "value"


def _column_sql(value: Any, dataset: _Dataset) -> str | None:
    if isinstance(value, str):
        return dataset.column(value)
    expression = text_at(value, "sqlExpression")
    return None if expression is None else _in_one_line(expression)


def _metric_sql(value: Any, dataset: _Dataset) -> str | None:
    if isinstance(value, str):
        # Only saved metrics: some charts name the columns of their axes under the same keys.
        return dataset.metrics.get(value)
    column = text_at(value, "column", "column_name")
    if text_at(value, "expressionType") == "SIMPLE" and column is not None:
        aggregate = (text_at(value, "aggregate") or "SUM").upper()
        if aggregate == "COUNT_DISTINCT":
            return f"COUNT(DISTINCT {dataset.column(column)})"
        return f"{re.sub(r'[^A-Z_]', '', aggregate) or 'SUM'}({dataset.column(column)})"
    expression = text_at(value, "sqlExpression")
    return None if expression is None else _in_one_line(expression)


def _filter_sql(value: dict[str, Any], dataset: _Dataset) -> str | None:
    expression = text_at(value, "sqlExpression")
    if text_at(value, "expressionType") == "SQL" and expression is not None:
        # A condition on aggregates is not a WHERE condition, but reads the same columns.
        return _in_one_line(expression) if text_at(value, "clause") != "HAVING" else None
    if (column := text_at(value, "subject")) is None:
        return None
    is_exclusion = (text_at(value, "operator") or "").upper() == "NOT IN"
    return f"{dataset.column(column)} {'NOT IN (NULL)' if is_exclusion else 'IS NOT NULL'}"


def _expressions(values: Any, name_key: str) -> Iterator[tuple[str, str]]:
    for _, each in mappings_in(values):
        name, expression = text_at(each, name_key), text_at(each, "expression")
        if name is not None and expression is not None:
            yield name, _in_one_line(expression)


def _parameters(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _in_one_line(sql: str) -> str:
    without_comments = re.sub(r"--[^\n]*", "", _without_jinja(sql))
    return " ".join(without_comments.split())


def _without_jinja(sql: str) -> str:
    """The SQL with NULL for each template expression and with unchanged line breaks."""

    def blank(match: re.Match[str]) -> str:
        value = "NULL" if match.group().startswith("{{") else ""
        return value + "\n" * match.group().count("\n")

    return _JINJA.sub(blank, sql)


def _engine(uri: str | None) -> str | None:
    """The engine in an SQLAlchemy URI, which may contain a password."""
    scheme, has_scheme, _ = (uri or "").partition("://")
    return engine_name(scheme.partition("+")[0]) if has_scheme else None
