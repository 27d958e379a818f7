"""The lineage of a dbt project: edges of its models, runs and annotations."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

import msgspec

from lumos.annotations.owner_names import owner_texts, parse_owners
from lumos.lineage.dbt.project import (
    DbtColumn,
    DbtNode,
    DbtProject,
    DbtRelations,
    DbtResult,
    resource_type,
    utc,
)
from lumos.lineage.header_comments import SLA, HeaderComment, header_of
from lumos.lineage.reported_lineage import (
    ColumnCoverage,
    JobFlow,
    LineageProblem,
    ReportedAnnotations,
    ReportedEdge,
    ReportedLineage,
    ReportedUnparsedStatement,
    TableName,
)
from lumos.model.catalog import Job
from lumos.model.dataset import Owner
from lumos.model.lineage import JobRun
from lumos.model.urn import Urn

_PLATFORM: Final = "dbt"
_RESOURCE_TYPES_WITH_RUNS: Final = ("model", "snapshot", "seed")
_STATES: Final = {
    "success": "COMPLETE",
    "partial success": "FAILED",
    "pass": "COMPLETE",
    "warn": "COMPLETE",
    "error": "FAILED",
    "fail": "FAILED",
    "runtime error": "FAILED",
}
# The prefix of the CTEs that dbt inserts for ephemeral models.
_EPHEMERAL_CTE: Final = "__dbt__cte__"
_TEMPLATE: Final = re.compile(r"\{[{%#]|[}%#]\}")
# The confidence of dependencies that are not in the SQL, such as `-- depends_on` hints.
_DEPENDENCY_CONFIDENCE: Final = 0.5


class ModelSql(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled SQL of a model, as a CREATE statement."""

    key: str
    text: str
    file: str


def model_queries(project: DbtProject, relations: DbtRelations) -> Iterator[ModelSql]:
    """The SQL of all models to analyse, with the line numbers of the compiled SQL."""
    for key, node in project.nodes.items():
        table = relations.table(key)
        if table is None or not node.compiled_text or (node.language or "sql") != "sql":
            continue
        keyword = "VIEW" if node.materialized in ("view", "materialized_view") else "TABLE"
        yield ModelSql(
            key=key,
            text=f"CREATE {keyword} {relations.sql_name(table)} AS {node.compiled_text}",
            file=_file(node),
        )


def report_project(project: DbtProject, analysed: Mapping[str, ReportedLineage]) -> ReportedLineage:
    """The lineage of a project; `analysed` is the lineage of its models' SQL, by unique id."""
    return _ProjectReport(project, analysed).build()


class _ProjectReport:
    def __init__(self, project: DbtProject, analysed: Mapping[str, ReportedLineage]) -> None:
        self._project = project
        self._analysed = analysed
        self._relations = DbtRelations(project)
        self._results = {each.unique_id: each for each in project.results}

    def build(self) -> ReportedLineage:
        jobs = [
            key
            for key, node in self._project.nodes.items()
            if resource_type(key, node) in _RESOURCE_TYPES_WITH_RUNS
            and self._relations.table(key) is not None
        ]
        return ReportedLineage(
            reporter=f"dbt:{self._project.name}",
            edges=tuple(edge for key in jobs for edge in self._edges(key)),
            scripts=tuple(
                msgspec.structs.replace(script, dataset=self._relations.table(key))
                for key, analysed in self._analysed.items()
                for script in analysed.scripts
            ),
            unparsed=tuple(self._unparsed_statements()),
            jobs=tuple(self._job(key) for key in jobs),
            flows=tuple(self._flow(key) for key in jobs),
            annotations=tuple(self._annotations()),
            problems=(
                *self._project.problems,
                *self._models_without_sql(jobs),
                *(problem for each in self._analysed.values() for problem in each.problems),
            ),
            coverage=sum((each.coverage for each in self._analysed.values()), ColumnCoverage()),
        )

    def _edges(self, key: str) -> Iterator[ReportedEdge]:
        table = self._relations.table(key)
        assert table is not None
        job = self._job_urn(key)
        analysed = self._analysed.get(key)
        upstreams_in_sql: set[object] = set()
        for edge in analysed.edges if analysed else ():
            upstreams_in_sql.add(edge.upstream)
            yield msgspec.structs.replace(edge, job=job)
        confidence = _DEPENDENCY_CONFIDENCE if upstreams_in_sql else 1.0
        for upstream in self._relations.upstream(key):
            if upstream not in upstreams_in_sql and upstream != table:
                yield ReportedEdge(
                    upstream=upstream, downstream=table, job=job, confidence=confidence
                )

    def _unparsed_statements(self) -> Iterator[ReportedUnparsedStatement]:
        """The compiled SQL that could not be parsed; it writes the table of its model."""
        for key, analysed in self._analysed.items():
            table = self._relations.table(key)
            for each in analysed.unparsed if table is not None else ():
                yield msgspec.structs.replace(each, writes=(table,))

    def _job(self, key: str) -> Job:
        node = self._project.nodes[key]
        owners = node_owners(self._project, node, HeaderComment())
        properties = {"materialized": node.materialized, "file": node.original_file_path}
        run = self._run(key)
        return Job(
            urn=self._job_urn(key),
            name=key,
            platform=_PLATFORM,
            owner=owners[0].name if owners else None,
            description=node.description or None,
            runs=() if run is None else (run,),
            properties={name: text for name, text in properties.items() if text},
        )

    def _run(self, key: str) -> JobRun | None:
        result = self._results.get(key)
        state = _STATES.get(result.status.lower()) if result else None
        if result is None or state is None:
            return None
        started = min(_times(result, "started_at"), default=self._project.run_at)
        if started is None:
            return None
        return msgspec.convert(
            {
                "run_id": self._project.invocation or started.isoformat(),
                "job": self._job_urn(key),
                "started_at": started,
                "ended_at": max(_times(result, "completed_at"), default=None),
                "state": state,
            },
            JobRun,
        )

    def _flow(self, key: str) -> JobFlow:
        table = self._relations.table(key)
        assert table is not None
        return JobFlow(
            job=self._job_urn(key), inputs=self._relations.upstream(key), outputs=(table,)
        )

    def _job_urn(self, key: str) -> str:
        _, _, name = key.partition(".")
        package, _, model = name.partition(".")
        return str(Urn.of(_PLATFORM, (package or self._project.name, model or key)))

    def _annotations(self) -> Iterator[ReportedAnnotations]:
        for key, node in (*self._project.nodes.items(), *self._project.sources.items()):
            table = self._relations.table(key)
            if table is None:
                continue
            annotations = self._annotations_of(key, node, table)
            if annotations != ReportedAnnotations(dataset=table):
                yield annotations

    def _annotations_of(self, key: str, node: DbtNode, table: TableName) -> ReportedAnnotations:
        header = header_of(node.raw_text) if resource_type(key, node) != "seed" else HeaderComment()
        catalog = self._project.catalog.get(key)
        columns: dict[str, str] = {
            column.name: column.comment
            for column in (catalog.sorted_columns if catalog else ())
            if column.comment
        }
        declared_columns = node.columns or {}
        columns |= {
            column.name or name: column.description
            for name, column in declared_columns.items()
            if column.description
        }
        sla = _meta(node).get(SLA)
        tags = dict.fromkeys((*tag_texts(node.tags), *header.tags))
        return ReportedAnnotations(
            dataset=table,
            description=node.description or header.description,
            owners=node_owners(self._project, node, header),
            tags=tuple(tags),
            properties={SLA: str(sla or header.sla)} if sla or header.sla else {},
            columns=columns,
            column_tags={
                column.name or name: column_tags
                for name, column in declared_columns.items()
                if (column_tags := _column_tags(column))
            },
        )

    def _models_without_sql(self, jobs: Iterable[str]) -> Iterator[LineageProblem]:
        without_sql = [
            key
            for key in jobs
            if (node := self._project.nodes[key]).compiled_text is None
            and resource_type(key, node) == "model"
            and (node.language or "sql") == "sql"
        ]
        if without_sql:
            more = f" and {len(without_sql) - 1} more" if len(without_sql) > 1 else ""
            reason = (
                f"No compiled SQL of {without_sql[0]}{more}: only dependencies are known. "
                "Run: dbt compile"
            )
            reporter = f"dbt:{self._project.name}"
            yield LineageProblem(place=reporter, reason=reason, severity="remark")


def node_owners(project: DbtProject, node: DbtNode, header: HeaderComment) -> tuple[Owner, ...]:
    """The owners from meta or the key `owner`, from the header comment, or from the group."""
    meta = _meta(node)
    in_meta = (*owner_texts(meta.get("owner")), *owner_texts(meta.get("owners")))
    owners = parse_owners((*in_meta, *owner_texts(node.owner)))
    if owners or header.owners:
        return owners or header.owners
    group = node.group or (node.config.group if node.config else None)
    if not group:
        return ()
    group_owners = [
        owner
        for each in project.groups.values()
        if each.name == group
        for owner in owner_texts(each.owner)
    ]
    return (Owner(name=group, kind="group"), *parse_owners(group_owners))


def _file(node: DbtNode) -> str:
    """The file of the model if it has the lines of the compiled SQL, or else the compiled file."""
    if not node.compiled_text or _has_same_lines(node.compiled_text, node.raw_text):
        return node.original_file_path or node.name
    return node.compiled_path or f"compiled/{node.package_name}/{node.original_file_path}"


def _has_same_lines(compiled: str, raw: str) -> bool:
    """Whether both texts have the same lines, except for lines with templates."""
    pairs = list(zip_longest(compiled.split("\n"), raw.split("\n")))
    return _EPHEMERAL_CTE not in compiled and all(
        raw_line is not None
        and compiled_line is not None
        and (_TEMPLATE.search(raw_line) is not None or compiled_line.rstrip() == raw_line.rstrip())
        for compiled_line, raw_line in pairs
    )


def _times(result: DbtResult, attribute: str) -> Iterator[Any]:
    return filter(None, (utc(getattr(timing, attribute)) for timing in result.timing))


def _meta(node: DbtNode) -> dict[str, Any]:
    """The meta section of a model; newer versions of dbt have it in the configuration."""
    in_config = node.config.meta if node.config else None
    return {
        **(in_config if isinstance(in_config, dict) else {}),
        **(node.meta if isinstance(node.meta, dict) else {}),
    }


def tag_texts(value: Any) -> tuple[str, ...]:
    """The tags of a node, which are a string or a list."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _column_tags(column: DbtColumn) -> tuple[str, ...]:
    in_config = column.config.get("tags") if isinstance(column.config, dict) else None
    return tuple(dict.fromkeys((*tag_texts(column.tags), *tag_texts(in_config))))
