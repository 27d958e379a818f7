"""Reports the lineage of jobs in OpenLineage events: edges, runs, reads and annotations."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from lumos.annotations.owner_names import parse_owner
from lumos.lineage.openlineage.events import DatasetKey, OpenLineageEvent
from lumos.lineage.openlineage.facets import (
    FACET_NAMES,
    SIZE_FACETS,
    ColumnLineageFacet,
    DocumentationFacet,
    InputColumns,
    JobTypeFacet,
    LifecycleFacet,
    OwnershipFacet,
    ParentFacet,
    SchemaFacet,
    SizesFacet,
    SourceCodeFacet,
    SymlinksFacet,
    TagsFacet,
    columns_by_input,
    read_facet,
)
from lumos.lineage.openlineage.naming import dataset_reference, postgres_location
from lumos.lineage.openlineage.runs import (
    Facets,
    JobKey,
    OpenLineageRun,
    RunDataset,
    decode_events,
    encode_events,
    runs_of,
)
from lumos.lineage.reported_lineage import (
    ColumnCoverage,
    DatasetAlias,
    DatasetRead,
    DatasetReference,
    JobFlow,
    LineageProblem,
    ReportedAnnotations,
    ReportedEdge,
    ReportedLineage,
)
from lumos.model.catalog import Job
from lumos.model.lineage import Derivation, JobRun, LineageType
from lumos.model.urn import InvalidUrn, Urn

ResultT = TypeVar("ResultT", bound=msgspec.Struct)

_PLATFORM: Final = "openlineage"
_FAILED_STATES: Final = ("FAILED", "ABORTED")
# How many runs without an end event are stored; some runs never report their end.
_MAX_RUNNING: Final = 50


def report_events(
    events: Iterable[OpenLineageEvent],
    load_stored_events: Callable[[Collection[str]], Mapping[str, bytes]] = lambda _: {},
) -> Iterator[ReportedLineage]:
    """Report the lineage of each job, and of each dataset in events without a job.

    `load_stored_events` loads the encoded events that each reporter stored last time.
    """
    by_job: dict[JobKey, list[OpenLineageEvent]] = {}
    by_dataset: dict[DatasetKey, list[OpenLineageEvent]] = {}
    for event in events:
        if event.job is not None:
            by_job.setdefault(JobKey(event.job.namespace, event.job.name), []).append(event)
        if event.dataset is not None:
            key = DatasetKey(event.dataset.namespace, event.dataset.name)
            by_dataset.setdefault(key, []).append(event)
    stored_events = load_stored_events(
        [*map(_job_reporter, by_job), *map(_dataset_reporter, by_dataset)]
    )
    for job, job_events in by_job.items():
        earlier_events = decode_events(stored_events.get(_job_reporter(job)))
        yield _JobReport(job, earlier_events, job_events).build()
    for dataset, dataset_events in by_dataset.items():
        earlier_events = decode_events(stored_events.get(_dataset_reporter(dataset)))
        yield _dataset_report(dataset, [*earlier_events, *dataset_events])


def _job_reporter(key: JobKey) -> str:
    return f"openlineage:{key.namespace}/{key.name}"


def _dataset_reporter(key: DatasetKey) -> str:
    return f"openlineage:dataset:{key.namespace}/{key.name}"


class _FacetReader:
    """Reads facets, and collects a problem for each invalid one."""

    def __init__(self, reporter: str) -> None:
        self._reporter = reporter
        self.problems: dict[LineageProblem, None] = {}

    def read(self, facets: Facets, kind: type[ResultT], name: str | None = None) -> ResultT | None:
        """The facet of a kind; `name` is needed if several facets are of that kind."""
        name = name or FACET_NAMES[kind]
        try:
            return read_facet(facets, name, kind)
        except msgspec.MsgspecError as error:
            reason = f"The facet '{name}' was ignored: {error}."
            problem = LineageProblem(place=self._reporter, reason=reason, severity="remark")
            self.problems[problem] = None
            return None


class _JobReport:
    """The lineage of one job, from its runs."""

    def __init__(
        self, key: JobKey, earlier: list[OpenLineageEvent], events: list[OpenLineageEvent]
    ) -> None:
        self._key = key
        self._events = [*earlier, *events]
        self._runs = runs_of(self._events)
        self._new_runs = {None if each.run is None else each.run.run_id for each in events}
        self._name = f"{key.namespace}/{key.name}"
        self._facets = _FacetReader(_job_reporter(key))
        self._run_by_output = _run_by_output(self._runs)
        self._relevant_runs = _relevant_runs(self._runs, self._run_by_output.values())
        job_facets: Facets = {}
        run_facets: Facets = {}
        for run in self._relevant_runs:
            job_facets |= run.job_facets
            run_facets |= run.run_facets
        self._type = self._facets.read(job_facets, JobTypeFacet) or JobTypeFacet()
        self._urn = _job_urn(key, self._type)
        self._job_facets = job_facets
        self._run_facets = run_facets

    def build(self) -> ReportedLineage:
        datasets = _merge_facets(self._relevant_runs)
        running = [run for run in self._runs if run.state == "RUNNING"][-_MAX_RUNNING:]
        edges, coverage = self._edges()
        return ReportedLineage(
            reporter=_job_reporter(self._key),
            edges=edges,
            jobs=(self._job(),),
            flows=(self._flow(),),
            aliases=tuple(self._for_each_dataset(datasets, _alias)),
            annotations=tuple(self._for_each_dataset(datasets, _annotations_of)),
            reads=tuple(self._reads()),
            problems=tuple(self._facets.problems),
            coverage=coverage,
            stored_events=encode_events(
                self._events, {run.run_id for run in (*self._relevant_runs, *running)}
            ),
        )

    def _for_each_dataset(
        self,
        datasets: Mapping[DatasetKey, Facets],
        convert: "Callable[[DatasetKey, Facets, _FacetReader], ResultT | None]",
    ) -> Iterator[ResultT]:
        for key, facets in datasets.items():
            if (result := convert(key, facets, self._facets)) is not None:
                yield result

    def _job(self) -> Job:
        read = self._facets.read
        documentation = read(self._job_facets, DocumentationFacet)
        ownership = read(self._job_facets, OwnershipFacet)
        parent = read(self._run_facets, ParentFacet)
        code = read(self._job_facets, SourceCodeFacet)
        properties = {
            "namespace": self._key.namespace,
            "job_type": self._type.job_type,
            "processing_type": self._type.processing_type,
            "parent": f"{parent.job.namespace}/{parent.job.name}" if parent else None,
            "source_code": code.url if code else None,
        }
        owners = ownership.owners if ownership and ownership.owners else ()
        return Job(
            urn=self._urn,
            name=self._key.name,
            platform=Urn.parse(self._urn).platform,
            owner=parse_owner(owners[0].name).name if owners else None,
            description=(documentation.description if documentation else None) or None,
            runs=tuple(self._job_runs()),
            properties={name: text for name, text in properties.items() if text},
        )

    def _job_runs(self) -> Iterator[JobRun]:
        for run in sorted(self._runs, key=lambda each: (each.started_at, each.run_id or "")):
            if run.run_id is not None:
                yield JobRun(
                    run_id=run.run_id,
                    job=self._urn,
                    started_at=run.started_at,
                    ended_at=run.ended_at,
                    state=run.state,
                )

    def _flow(self) -> JobFlow:
        inputs = {
            dataset_reference(*key): None for run in self._relevant_runs for key in run.inputs
        }
        outputs = {
            dataset_reference(*key): None for run in self._relevant_runs for key in run.outputs
        }
        return JobFlow(job=self._urn, inputs=tuple(inputs), outputs=tuple(outputs))

    def _edges(self) -> tuple[tuple[ReportedEdge, ...], ColumnCoverage]:
        """The edges to each output, from the run that wrote it last, and their coverage."""
        edges: list[ReportedEdge] = []
        coverage = ColumnCoverage()
        for output, run in self._run_by_output.items():
            run_dataset = run.outputs[output]
            lifecycle = self._facets.read(run_dataset.facets, LifecycleFacet)
            if lifecycle and (lifecycle.lifecycle_state_change or "").upper() == "DROP":
                continue
            lineage = self._facets.read(run_dataset.facets, ColumnLineageFacet)
            if run.inputs or lineage is not None:
                coverage += _coverage(self._facets.read(run_dataset.facets, SchemaFacet), lineage)
            edges += _edges_to(output, run.inputs, lineage, job=self._urn, rank=_rank(run))
        return tuple(edges), coverage

    def _reads(self) -> Iterator[DatasetRead]:
        """The reads of new runs that did not fail, one per run and input."""
        for run in self._runs:
            if (
                run.run_id is None
                or run.run_id not in self._new_runs
                or run.state in _FAILED_STATES
            ):
                continue
            columns: dict[DatasetKey, dict[str, None]] = {}
            for run_dataset in run.outputs.values():
                lineage = self._facets.read(run_dataset.facets, ColumnLineageFacet)
                for key, each in (columns_by_input(lineage) if lineage else {}).items():
                    input_columns = columns.setdefault(key, {})
                    input_columns |= {mapping.upstream: None for mapping in each.mappings}
                    input_columns |= {use.upstream: None for use in each.uses}
            for key, run_dataset in run.inputs.items():
                sizes = self._sizes(run_dataset)
                yield DatasetRead(
                    dataset=dataset_reference(*key),
                    reader=self._name,
                    at=run.started_at,
                    run=run.run_id,
                    columns=tuple(sorted(columns.get(key, ()))),
                    bytes=sizes.bytes if sizes.size is None else sizes.size,
                    rows=sizes.row_count,
                )

    def _sizes(self, run_dataset: RunDataset) -> SizesFacet:
        for name in SIZE_FACETS:
            for facets in (run_dataset.io_facets, run_dataset.facets):
                if (sizes := self._facets.read(facets, SizesFacet, name)) is not None:
                    return sizes
        return SizesFacet()


def _rank(run: OpenLineageRun) -> tuple[bool, datetime]:
    """A sort key for runs: complete runs rank highest, since other runs may lack outputs."""
    return run.state == "COMPLETE", run.last_at


def _run_by_output(runs: Iterable[OpenLineageRun]) -> dict[DatasetKey, OpenLineageRun]:
    """For each output, the run with the highest rank that wrote it."""
    by_output: dict[DatasetKey, OpenLineageRun] = {}
    for run in sorted(runs, key=_rank):
        by_output |= dict.fromkeys(run.outputs, run)
    return by_output


def _relevant_runs(
    runs: Sequence[OpenLineageRun], output_runs: Iterable[OpenLineageRun]
) -> list[OpenLineageRun]:
    """The runs that wrote the current outputs, the highest-ranked run, and the job's definition.

    The definition is the entry without a run id.
    """
    run_ids = {run.run_id for run in output_runs} | {None, max(runs, key=_rank).run_id}
    return [run for run in runs if run.run_id in run_ids]


def _job_urn(key: JobKey, type: JobTypeFacet) -> str:
    platform = (type.integration or _PLATFORM).lower()
    path = (key.namespace, key.name) if key.namespace else (key.name,)
    try:
        return str(Urn.of(platform, path))
    except InvalidUrn:
        return str(Urn.of(_PLATFORM, path))


def _merge_facets(runs: Iterable[OpenLineageRun]) -> dict[DatasetKey, Facets]:
    """The facets of each dataset; newer runs override older ones."""
    facets_by_dataset: dict[DatasetKey, Facets] = {}
    for run in runs:
        for key, run_dataset in (*run.inputs.items(), *run.outputs.items()):
            facets_by_dataset[key] = facets_by_dataset.get(key, {}) | run_dataset.facets
    return facets_by_dataset


def _edges_to(
    output: DatasetKey,
    inputs: Iterable[DatasetKey],
    lineage: ColumnLineageFacet | None,
    *,
    job: str | None,
    rank: tuple[bool, datetime] | None = None,
) -> Iterator[ReportedEdge]:
    columns = columns_by_input(lineage) if lineage is not None else {}
    upstreams = list(dict.fromkeys((*inputs, *columns)))
    for upstream in upstreams:
        input_columns = columns.get(upstream, InputColumns(mappings={}, uses={}))
        yield ReportedEdge(
            upstream=dataset_reference(*upstream),
            downstream=dataset_reference(*output),
            type=_type(input_columns, is_only_input=len(upstreams) == 1),
            job=job,
            rank=rank,
            columns=tuple(input_columns.mappings),
            uses=tuple(input_columns.uses),
        )


def _type(columns: InputColumns, *, is_only_input: bool) -> LineageType:
    is_copy = (
        is_only_input
        and bool(columns.mappings)
        and not columns.uses
        and all(
            mapping.derivation is Derivation.IDENTITY and mapping.upstream == mapping.downstream
            for mapping in columns.mappings
        )
    )
    return "COPIED" if is_copy else "TRANSFORMED"


def _coverage(schema: SchemaFacet | None, lineage: ColumnLineageFacet | None) -> ColumnCoverage:
    resolved_names = {name for name, each in (lineage.fields if lineage else {}).items()
                if each.input_fields}  # fmt: skip
    names = {field.name for field in (schema.fields if schema else None) or ()} | resolved_names
    return ColumnCoverage(columns=len(names), resolved=len(resolved_names))


def _dataset_report(key: DatasetKey, events: list[OpenLineageEvent]) -> ReportedLineage:
    """The lineage of a dataset, from its events without a job.

    Facets of later events override those of earlier ones.
    """
    facets: Facets = {}
    for event in sorted(events, key=lambda each: each.at):
        facets |= (event.dataset.facets if event.dataset else None) or {}
    reporter = _dataset_reporter(key)
    reader = _FacetReader(reporter)
    lineage = reader.read(facets, ColumnLineageFacet)
    edges = tuple(_edges_to(key, (), lineage, job=None))
    schema = reader.read(facets, SchemaFacet)
    alias = _alias(key, facets, reader)
    annotations = _annotations_of(key, facets, reader)
    return ReportedLineage(
        reporter=reporter,
        edges=edges,
        aliases=(alias,) if alias else (),
        annotations=(annotations,) if annotations else (),
        problems=tuple(reader.problems),
        coverage=_coverage(schema, lineage) if lineage else ColumnCoverage(),
        stored_events=encode_events(events, {None}),
    )


def _alias(key: DatasetKey, facets: Facets, reader: _FacetReader) -> DatasetAlias | None:
    symlinks = reader.read(facets, SymlinksFacet)
    identifiers = (symlinks.identifiers if symlinks else None) or ()
    other_names: list[DatasetReference] = [
        dataset_reference(each.namespace, each.name) for each in identifiers
    ]
    if (location := postgres_location(*key)) is not None:
        other_names.append(location)
    dataset = dataset_reference(*key)
    other_names = [other for other in dict.fromkeys(other_names) if other != dataset]
    return DatasetAlias(dataset=dataset, others=tuple(other_names)) if other_names else None


def _annotations_of(
    key: DatasetKey, facets: Facets, reader: _FacetReader
) -> ReportedAnnotations | None:
    documentation = reader.read(facets, DocumentationFacet)
    ownership = reader.read(facets, OwnershipFacet)
    schema = reader.read(facets, SchemaFacet)
    tags = reader.read(facets, TagsFacet)
    tag_entries = (tags.tags if tags else None) or ()
    column_tags: dict[str, tuple[str, ...]] = {}
    for tag in tag_entries:
        if tag.field is not None:
            column_tags[tag.field] = (*column_tags.get(tag.field, ()), _tag(tag.key, tag.value))
    annotations = ReportedAnnotations(
        dataset=dataset_reference(*key),
        description=(documentation.description if documentation else None) or None,
        owners=tuple(
            parse_owner(owner.name, type=owner.type.upper() if owner.type else "TECHNICAL_OWNER")
            for owner in (ownership.owners if ownership else None) or ()
        ),
        tags=tuple(_tag(tag.key, tag.value) for tag in tag_entries if tag.field is None),
        columns={
            field.name: field.description
            for field in (schema.fields if schema else None) or ()
            if field.description
        },
        column_tags=column_tags,
    )
    return None if annotations == ReportedAnnotations(dataset=annotations.dataset) else annotations


def _tag(key: str, value: object) -> str:
    """The text of a tag: its key, and its value unless that is empty or `true`."""
    text = str(value).strip() if value is not None else ""
    return key if text.lower() in ("", "true") else f"{key}:{text}"
