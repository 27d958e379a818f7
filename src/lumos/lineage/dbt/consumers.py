"""Exposures, metrics and saved queries of a dbt project."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lumos.annotations.owner_names import owner_texts, parse_owners
from lumos.errors import LumosError
from lumos.lineage.consumers import Consumer, ConsumerExport, consumer_reference, make_entity
from lumos.lineage.dbt.project import DbtNode, DbtProject, DbtRelations
from lumos.lineage.dbt.report import node_owners, tag_texts
from lumos.lineage.header_comments import HeaderComment
from lumos.lineage.reported_lineage import (
    DatasetReference,
    LineageProblem,
    ReportedEdge,
    TableName,
)
from lumos.lineage.yaml_file import YamlFile, mappings_in, text_at
from lumos.model.catalog import entity_urn

_TOOL: Final = "dbt"
_PROJECT_FILE: Final = "dbt_project.yml"
_AGGREGATES: Final = {
    "average": "AVG({})",
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "max": "MAX({})",
    "min": "MIN({})",
}
# {{ Dimension('order_id__region') }} and {{ TimeDimension('order_id__ordered_at', 'day') }}
_DIMENSION: Final = re.compile(
    r"""\{\{\s*(?:Time)?Dimension\(\s*['"](?:\w+__)?(\w+)['"][^)]*\)[^}]*\}\}"""
)
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_REFERENCE: Final = re.compile(
    r"""^\s*(ref|source|metric)\(\s*['"]([^'"]+)['"]\s*(?:,\s*['"]([^'"]+)['"]\s*)?[,)]"""
)


def project_consumers(
    project: DbtProject, relations: DbtRelations, *, folder: Path
) -> Iterator[Consumer]:
    """The exposures, metrics and saved queries of a project; `folder` is that of the project."""
    yield from _ProjectConsumers(project, relations, _DefinitionLines(folder)).all()


class _ProjectConsumers:
    def __init__(
        self, project: DbtProject, relations: DbtRelations, lines: "_DefinitionLines"
    ) -> None:
        self._project = project
        self._relations = relations
        self._lines = lines
        self._sections = {
            "exposures": ("dashboard", project.exposures),
            "metrics": ("metric", project.metrics),
            "saved_queries": ("saved_query", project.saved_queries),
        }
        self._urns = {
            key: entity_urn(kind, _TOOL, _id(project, node))
            for kind, nodes in self._sections.values()
            for key, node in nodes.items()
        }

    def all(self) -> Iterator[Consumer]:
        for section, (kind, nodes) in self._sections.items():
            for key, node in nodes.items():
                yield self._consumer(section, kind, key, node)

    def _consumer(self, section: str, kind: str, key: str, node: DbtNode) -> Consumer:
        file = node.original_file_path or None
        reference = consumer_reference(self._urns[key])
        query = self._query(node) if section == "metrics" else None
        return Consumer(
            entity=make_entity(
                kind,
                _TOOL,
                _id(self._project, node),
                name=node.label or node.name,
                owners=node_owners(self._project, node, HeaderComment()),
                description=node.description,
                tags=tag_texts(node.tags),
                type=_exposure_type(node.type) if section == "exposures" else None,
                url=node.url,
                maturity=node.maturity,
                file=file,
            ),
            sql=query,
            file=file,
            line=self._lines.of(file, section, node.name),
            engine=self._project.adapter,
            edges=tuple(
                ReportedEdge(upstream=upstream, downstream=reference)
                for upstream in self._upstream(key, node)
            ),
        )

    def _upstream(self, key: str, node: DbtNode) -> Iterator[DatasetReference]:
        """The metrics and tables that a consumer depends on, without the consumer itself."""
        visited = {key}
        queue = list(node.depends_on.nodes) if node.depends_on else []
        while queue:
            each = queue.pop(0)
            if each in visited:
                continue
            visited.add(each)
            if each in self._urns:
                yield consumer_reference(self._urns[each])
            elif (table := self._relations.table(each)) is not None:
                yield table
            else:
                # An ephemeral model, or a semantic model, which belongs to one model.
                semantic_model = self._project.semantic_models.get(each)
                if semantic_model is not None and semantic_model.depends_on is not None:
                    queue += semantic_model.depends_on.nodes
                else:
                    yield from self._relations.upstream(each)

    def _query(self, metric: DbtNode) -> str | None:
        """The measures of a metric as a query on the table of their semantic model."""
        for key in metric.depends_on.nodes if metric.depends_on else ():
            semantic_model = self._project.semantic_models.get(key)
            if semantic_model is None or semantic_model.depends_on is None:
                continue
            tables = [
                table
                for each in semantic_model.depends_on.nodes
                if (table := self._relations.table(each)) is not None
            ]
            measures = _by_name(semantic_model.measures)
            inputs = [each for name in _measure_names(metric) if (each := measures.get(name))]
            if len(tables) != 1 or not inputs:
                continue
            return _metric_sql(metric, semantic_model, inputs, self._relations.sql_name(tables[0]))
        return None


def _metric_sql(
    metric: DbtNode, semantic_model: DbtNode, measures: list[dict[str, Any]], table: str
) -> str:
    dimensions = _by_name(semantic_model.dimensions)
    columns = [_aggregate(each) for each in measures]
    defaults = semantic_model.defaults if isinstance(semantic_model.defaults, dict) else {}
    time_dimensions = dict.fromkeys(
        _expression(dimensions[name])
        for each in measures
        if (name := each.get("agg_time_dimension") or defaults.get("agg_time_dimension"))
        in dimensions
    )
    where = [
        _TEMPLATE.sub("NULL", _DIMENSION.sub(lambda match: _dimension(match, dimensions), text))
        for text in _filters(metric)
    ]
    sql = f"SELECT {', '.join((*time_dimensions, *columns))} FROM {table}"
    if where:
        sql += f" WHERE {' AND '.join(f'({each})' for each in where)}"
    return sql + (f" GROUP BY {', '.join(time_dimensions)}" if time_dimensions else "")


def _aggregate(measure: dict[str, Any]) -> str:
    pattern = _AGGREGATES.get(str(measure.get("agg")), "SUM({})")
    return f"{pattern.format(_expression(measure))} AS {measure['name']}"


def _expression(element: dict[str, Any]) -> str:
    """The SQL of a measure or dimension; by default the column of the same name."""
    return str(element.get("expr") or element["name"])


def _dimension(match: re.Match[str], dimensions: Mapping[str, dict[str, Any]]) -> str:
    dimension = dimensions.get(match.group(1))
    return "NULL" if dimension is None else _expression(dimension)


def _measure_names(metric: DbtNode) -> list[str]:
    parameters = metric.type_params if isinstance(metric.type_params, dict) else {}
    return list(_by_name([parameters.get("measure"), *(parameters.get("input_measures") or ())]))


def _filters(metric: DbtNode) -> Iterator[str]:
    filters = metric.filter.get("where_filters") if isinstance(metric.filter, dict) else None
    for each in filters if isinstance(filters, list) else ():
        if isinstance(each, dict) and isinstance(each.get("where_sql_template"), str):
            yield each["where_sql_template"]


def _by_name(elements: Any) -> dict[str, dict[str, Any]]:
    return {
        each["name"]: each
        for each in (elements if isinstance(elements, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    }


def _id(project: DbtProject, node: DbtNode) -> str:
    return f"{node.package_name or project.name}.{node.name}"


def _exposure_type(type: Any) -> str | None:
    return type if isinstance(type, str) and type != "dashboard" else None


class _DefinitionLines:
    """The lines of YAML files on which exposures and metrics are defined."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_file: dict[str, dict[tuple[str, str], int]] = {}

    def of(self, file: str | None, section: str, name: str) -> int | None:
        # The manifest may contain any path, so only files inside of the project are read.
        if file is None or Path(file).is_absolute() or ".." in Path(file).parts:
            return None
        if file not in self._by_file:
            self._by_file[file] = self._read(self._folder / file, file)
        return self._by_file[file].get((section, name))

    def _read(self, file: Path, name: str) -> dict[tuple[str, str], int]:
        try:
            document = YamlFile(file.read_bytes(), name=name)
        except (OSError, LumosError):
            # The manifest has the content; only the lines are missing.
            return {}
        return {
            (section, str(each.get("name"))): document.line(section, number) or 1
            for section in ("exposures", "metrics", "saved_queries")
            for number, each in mappings_in(document.value.get(section))
        }


def report_exposures(file: Path, *, name: str) -> ConsumerExport:
    """The exposures of a YAML file of a project without artefacts.

    Raises ConfigurationError or UnreadableDocument if the file cannot be read.
    """
    document = YamlFile(file.read_bytes(), name=name)
    project = _project_name(file)
    consumers: list[Consumer] = []
    problems: list[LineageProblem] = []
    for number, exposure in mappings_in(document.value.get("exposures")):
        exposure_name = text_at(exposure, "name") or f"exposure {number + 1}"
        id = f"{project}.{exposure_name}"
        reference = consumer_reference(entity_urn("dashboard", _TOOL, id))
        edges = []
        for text in tag_texts(exposure.get("depends_on")):
            upstream = _parse_reference(text, project)
            if upstream is None:
                reason = f"'{text}' of the exposure {exposure_name} is not a ref, source or metric."
                line = document.line("exposures", number)
                problems.append(LineageProblem(place=name, line=line, reason=reason))
            else:
                edges.append(ReportedEdge(upstream=upstream, downstream=reference))
        entity = make_entity(
            "dashboard",
            _TOOL,
            id,
            name=text_at(exposure, "label") or exposure_name,
            owners=parse_owners(owner_texts(exposure.get("owner"))),
            description=text_at(exposure, "description"),
            type=_exposure_type(exposure.get("type")),
            url=text_at(exposure, "url"),
            maturity=text_at(exposure, "maturity"),
            file=name,
        )
        consumers.append(Consumer(entity=entity, edges=tuple(edges)))
    return ConsumerExport(
        reporter=f"exposures:{name}", consumers=tuple(consumers), problems=tuple(problems)
    )


def _parse_reference(text: str, project: str) -> DatasetReference | None:
    match = _REFERENCE.match(text)
    if match is None:
        return None
    kind, first, second = match.groups()
    if kind == "metric":
        return consumer_reference(entity_urn("metric", _TOOL, f"{project}.{first}"))
    if kind == "source":
        return TableName(parts=(first.lower(), second.lower())) if second else None
    # The first of two arguments of ref is a package.
    return TableName(parts=((second or first).lower(),))


def _project_name(file: Path) -> str:
    """The name of the dbt project that a file is in, or else the name of its folder."""
    for folder in file.absolute().parents:
        if (folder / _PROJECT_FILE).is_file():
            try:
                content = (folder / _PROJECT_FILE).read_bytes()
                return text_at(YamlFile(content, name=_PROJECT_FILE).value, "name") or "dbt"
            except (OSError, LumosError):
                break
    return file.absolute().parent.name
