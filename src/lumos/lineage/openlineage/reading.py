"""Runs as reports: one for each job, with its edges, runs, reads and what is told of datasets."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from lumos.annotations.owner_names import owner_of
from lumos.lineage.openlineage.columns import Columns, columns_of
from lumos.lineage.openlineage.events import Event
from lumos.lineage.openlineage.facets import (
    NAMES,
    SIZES,
    ColumnLineage,
    Documentation,
    JobType,
    Lifecycle,
    Ownership,
    Parent,
    SchemaFacet,
    Sizes,
    SourceCode,
    Symlinks,
    Tags,
    facet,
    named,
)
from lumos.lineage.openlineage.memory import memory_of, recalled
from lumos.lineage.openlineage.naming import location, reference
from lumos.lineage.openlineage.runs import (
    DatasetKey,
    Facets,
    JobKey,
    Run,
    Seen,
    datasets_of,
    runs_of,
)
from lumos.lineage.reported import (
    Alias,
    Coverage,
    Described,
    JobFlow,
    Problem,
    Read,
    Reference,
    Reported,
    ReportedEdge,
)
from lumos.model.catalog import Job
from lumos.model.lineage import Derivation, JobRun, LineageType
from lumos.model.urn import InvalidUrn, Urn

Kind = TypeVar("Kind", bound=msgspec.Struct)

_PLATFORM: Final = "openlineage"
_CAME_TO_NOTHING: Final = ("FAILED", "ABORTED")
# Runs whose end may never be told.
_MOST_RUNNING: Final = 50


def reports(
    events: Iterable[Event],
    recall: Callable[[Collection[str]], Mapping[str, bytes]] = lambda _: {},
) -> Iterator[Reported]:
    """What each job of some events reports, and each dataset that is told of without a job.

    `recall` gives the memories of reporters, from what they reported last.
    """
    by_job: dict[JobKey, list[Event]] = {}
    by_dataset: dict[DatasetKey, list[Event]] = {}
    for event in events:
        if event.job is not None:
            by_job.setdefault(JobKey(event.job.namespace, event.job.name), []).append(event)
        if event.dataset is not None:
            key = DatasetKey(event.dataset.namespace, event.dataset.name)
            by_dataset.setdefault(key, []).append(event)
    memories = recall([*map(_job_reporter, by_job), *map(_dataset_reporter, by_dataset)])
    for job, some in by_job.items():
        earlier = recalled(memories.get(_job_reporter(job)))
        yield _JobReport(job, earlier, some).reported()
    for dataset, some in by_dataset.items():
        earlier = recalled(memories.get(_dataset_reporter(dataset)))
        yield _dataset_report(dataset, [*earlier, *some])


def _job_reporter(key: JobKey) -> str:
    return f"openlineage:{key.namespace}/{key.name}"


def _dataset_reporter(key: DatasetKey) -> str:
    return f"openlineage:dataset:{key.namespace}/{key.name}"


class _Facets:
    """Reads facets, and notes those that are not as they should be."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.problems: dict[Problem, None] = {}

    def read(self, facets: Facets, kind: type[Kind], name: str | None = None) -> Kind | None:
        try:
            return facet(facets, kind) if name is None else named(facets, name, kind)
        except msgspec.MsgspecError as problem:
            reason = f"The facet '{name or NAMES[kind]}' is passed over: {problem}."
            self.problems[Problem(place=self._place, reason=reason, severity="remark")] = None
            return None


class _JobReport:
    """All that the runs of one job come to."""

    def __init__(self, key: JobKey, earlier: list[Event], events: list[Event]) -> None:
        self._key = key
        self._events = [*earlier, *events]
        self._runs = runs_of(self._events)
        self._news = {None if each.run is None else each.run.run_id for each in events}
        self._name = f"{key.namespace}/{key.name}"
        self._facets = _Facets(_job_reporter(key))
        self._writers = _writers(self._runs)
        self._counting = _counting(self._runs, self._writers.values())
        job_facets: Facets = {}
        run_facets: Facets = {}
        for run in self._counting:
            job_facets |= run.job_facets
            run_facets |= run.run_facets
        self._type = self._facets.read(job_facets, JobType) or JobType()
        self._urn = _job_urn(key, self._type)
        self._job_facets = job_facets
        self._run_facets = run_facets

    def reported(self) -> Reported:
        datasets = _merged(self._counting)
        edges, coverage = self._edges()
        return Reported(
            reporter=_job_reporter(self._key),
            edges=edges,
            jobs=(self._job(),),
            flows=(self._flow(),),
            aliases=tuple(self._each(datasets, _alias)),
            descriptions=tuple(self._each(datasets, _described)),
            reads=tuple(self._reads()),
            problems=tuple(self._facets.problems),
            coverage=coverage,
            memory=memory_of(self._events, {run.run_id for run in self._remembered()}),
        )

    def _remembered(self) -> list[Run]:
        """The runs that count, and those whose end is still to be told."""
        running = [run for run in self._runs if run.state == "RUNNING"]
        return [*self._counting, *running[-_MOST_RUNNING:]]

    def _each(
        self,
        datasets: Mapping[DatasetKey, Facets],
        make: "Callable[[DatasetKey, Facets, _Facets], Kind | None]",
    ) -> Iterator[Kind]:
        for key, facets in datasets.items():
            if (made := make(key, facets, self._facets)) is not None:
                yield made

    def _job(self) -> Job:
        read = self._facets.read
        documentation = read(self._job_facets, Documentation)
        ownership = read(self._job_facets, Ownership)
        parent = read(self._run_facets, Parent)
        code = read(self._job_facets, SourceCode)
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
            owner=owner_of(owners[0].name).name if owners else None,
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
        inputs = {reference(*key): None for run in self._counting for key in run.inputs}
        outputs = {reference(*key): None for run in self._counting for key in run.outputs}
        return JobFlow(job=self._urn, inputs=tuple(inputs), outputs=tuple(outputs))

    def _edges(self) -> tuple[tuple[ReportedEdge, ...], Coverage]:
        """The edges to each output as the run that counts for it has them."""
        edges: list[ReportedEdge] = []
        coverage = Coverage()
        for output, run in self._writers.items():
            seen = run.outputs[output]
            lifecycle = self._facets.read(seen.facets, Lifecycle)
            if lifecycle and (lifecycle.lifecycle_state_change or "").upper() == "DROP":
                continue
            lineage = self._facets.read(seen.facets, ColumnLineage)
            if run.inputs or lineage is not None:
                coverage += _coverage(self._facets.read(seen.facets, SchemaFacet), lineage)
            edges += _edges_to(output, run.inputs, lineage, job=self._urn, rank=_rank(run))
        return tuple(edges), coverage

    def _reads(self) -> Iterator[Read]:
        """A run reads each of its inputs once; what failed does not count as having read."""
        for run in self._runs:
            if run.run_id is None or run.run_id not in self._news or run.state in _CAME_TO_NOTHING:
                continue
            columns: dict[DatasetKey, dict[str, None]] = {}
            for seen in run.outputs.values():
                lineage = self._facets.read(seen.facets, ColumnLineage)
                for key, each in (columns_of(lineage) if lineage else {}).items():
                    named_columns = columns.setdefault(key, {})
                    named_columns |= {fact.upstream: None for fact in each.mappings}
                    named_columns |= {fact.upstream: None for fact in each.uses}
            for key, seen in run.inputs.items():
                sizes = self._sizes(seen)
                yield Read(
                    dataset=reference(*key),
                    reader=self._name,
                    at=run.started_at,
                    run=run.run_id,
                    columns=tuple(sorted(columns.get(key, ()))),
                    bytes=sizes.bytes if sizes.size is None else sizes.size,
                    rows=sizes.row_count,
                )

    def _sizes(self, seen: Seen) -> Sizes:
        for name in SIZES:
            for facets in (seen.own_facets, seen.facets):
                if (found := self._facets.read(facets, Sizes, name)) is not None:
                    return found
        return Sizes()


def _rank(run: Run) -> tuple[bool, datetime]:
    """A run that did not come to its end may not have told all; one that did goes before it."""
    return run.state == "COMPLETE", run.last_at


def _writers(runs: Iterable[Run]) -> dict[DatasetKey, Run]:
    """For each output the run that says what it is made from."""
    writers: dict[DatasetKey, Run] = {}
    for run in sorted(runs, key=_rank):
        writers |= dict.fromkeys(run.outputs, run)
    return writers


def _counting(runs: Sequence[Run], writers: Iterable[Run]) -> list[Run]:
    """The runs that say how things are: of each output, the latest one, and what is planned."""
    wanted = {run.run_id for run in writers} | {None, max(runs, key=_rank).run_id}
    return [run for run in runs if run.run_id in wanted]


def _job_urn(key: JobKey, type: JobType) -> str:
    platform = (type.integration or _PLATFORM).lower()
    path = (key.namespace, key.name) if key.namespace else (key.name,)
    try:
        return str(Urn.of(platform, path))
    except InvalidUrn:
        return str(Urn.of(_PLATFORM, path))


def _merged(runs: Iterable[Run]) -> dict[DatasetKey, Facets]:
    """What all runs say of each dataset, the newest overruling the others."""
    merged: dict[DatasetKey, Facets] = {}
    for run in runs:
        for key, seen in (*run.inputs.items(), *run.outputs.items()):
            merged[key] = merged.get(key, {}) | seen.facets
    return merged


def _edges_to(
    output: DatasetKey,
    inputs: Iterable[DatasetKey],
    lineage: ColumnLineage | None,
    *,
    job: str | None,
    rank: tuple[bool, datetime] | None = None,
) -> Iterator[ReportedEdge]:
    columns = columns_of(lineage) if lineage is not None else {}
    upstreams = list(dict.fromkeys((*inputs, *columns)))
    for upstream in upstreams:
        known = columns.get(upstream, Columns(mappings={}, uses={}))
        yield ReportedEdge(
            upstream=reference(*upstream),
            downstream=reference(*output),
            type=_type(known, alone=len(upstreams) == 1),
            job=job,
            rank=rank,
            columns=tuple(known.mappings),
            uses=tuple(known.uses),
        )


def _type(columns: Columns, *, alone: bool) -> LineageType:
    is_copy = (
        alone
        and bool(columns.mappings)
        and not columns.uses
        and all(
            mapping.derivation is Derivation.IDENTITY and mapping.upstream == mapping.downstream
            for mapping in columns.mappings
        )
    )
    return "COPIED" if is_copy else "TRANSFORMED"


def _coverage(schema: SchemaFacet | None, lineage: ColumnLineage | None) -> Coverage:
    resolved = {name for name, each in (lineage.fields if lineage else {}).items()
                if each.input_fields}  # fmt: skip
    names = {field.name for field in (schema.fields if schema else None) or ()} | resolved
    return Coverage(columns=len(names), resolved=len(resolved))


def _dataset_report(key: DatasetKey, events: list[Event]) -> Reported:
    ((_, seen),) = datasets_of(events)
    place = _dataset_reporter(key)
    facets = _Facets(place)
    lineage = facets.read(seen.facets, ColumnLineage)
    edges = tuple(_edges_to(key, (), lineage, job=None))
    schema = facets.read(seen.facets, SchemaFacet)
    alias, described = _alias(key, seen.facets, facets), _described(key, seen.facets, facets)
    return Reported(
        reporter=place,
        edges=edges,
        aliases=(alias,) if alias else (),
        descriptions=(described,) if described else (),
        problems=tuple(facets.problems),
        coverage=_coverage(schema, lineage) if lineage else Coverage(),
        memory=memory_of(events, {None}),
    )


def _alias(key: DatasetKey, facets: Facets, reader: _Facets) -> Alias | None:
    symlinks = reader.read(facets, Symlinks)
    identifiers = (symlinks.identifiers if symlinks else None) or ()
    others: list[Reference] = [reference(each.namespace, each.name) for each in identifiers]
    if (address := location(*key)) is not None:
        others.append(address)
    own = reference(*key)
    others = [other for other in dict.fromkeys(others) if other != own]
    return Alias(dataset=own, others=tuple(others)) if others else None


def _described(key: DatasetKey, facets: Facets, reader: _Facets) -> Described | None:
    documentation = reader.read(facets, Documentation)
    ownership = reader.read(facets, Ownership)
    schema = reader.read(facets, SchemaFacet)
    tags = reader.read(facets, Tags)
    marks = (tags.tags if tags else None) or ()
    column_tags: dict[str, tuple[str, ...]] = {}
    for tag in marks:
        if tag.field is not None:
            column_tags[tag.field] = (*column_tags.get(tag.field, ()), _tag(tag.key, tag.value))
    described = Described(
        dataset=reference(*key),
        description=(documentation.description if documentation else None) or None,
        owners=tuple(
            owner_of(owner.name, type=owner.type.upper() if owner.type else "TECHNICAL_OWNER")
            for owner in (ownership.owners if ownership else None) or ()
        ),
        tags=tuple(_tag(tag.key, tag.value) for tag in marks if tag.field is None),
        columns={
            field.name: field.description
            for field in (schema.fields if schema else None) or ()
            if field.description
        },
        column_tags=column_tags,
    )
    return None if described == Described(dataset=described.dataset) else described


def _tag(key: str, value: object) -> str:
    """A tag's key, with its value where that says more than that the tag is set."""
    text = str(value).strip() if value is not None else ""
    return key if text.lower() in ("", "true") else f"{key}:{text}"
