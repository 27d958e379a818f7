"""Runs as reports: one for each job, with its edges, runs, reads and what is told of datasets."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from lumos.lineage.openlineage.columns import Columns, columns_of
from lumos.lineage.openlineage.events import Event
from lumos.lineage.openlineage.facets import (
    NAMES,
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
from lumos.lineage.owners import owner_of
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
_SIZES: Final = ("inputStatistics", "dataQualityMetrics")


def reports(events: Iterable[Event]) -> Iterator[Reported]:
    """What each job of some events reports, and each dataset that is told of without a job."""
    every = list(events)
    by_job: dict[JobKey, list[Run]] = {}
    for run in runs_of(every):
        by_job.setdefault(run.job, []).append(run)
    for key, runs in by_job.items():
        yield _JobReport(key, runs).reported()
    for dataset, seen in datasets_of(every):
        yield _dataset_report(dataset, seen)


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

    def __init__(self, key: JobKey, runs: list[Run]) -> None:
        self._key = key
        self._runs = runs
        self._name = f"{key.namespace}/{key.name}"
        self._facets = _Facets(f"openlineage:{self._name}")
        job_facets: Facets = {}
        run_facets: Facets = {}
        for run in runs:
            job_facets |= run.job_facets
            run_facets |= run.run_facets
        self._type = self._facets.read(job_facets, JobType) or JobType()
        self._urn = _job_urn(key, self._type)
        self._job_facets = job_facets
        self._run_facets = run_facets

    def reported(self) -> Reported:
        datasets = _merged(self._runs)
        edges, coverage = self._edges()
        return Reported(
            reporter=f"openlineage:{self._name}",
            edges=edges,
            jobs=(self._job(),),
            flows=(self._flow(),),
            aliases=tuple(self._each(datasets, _alias)),
            descriptions=tuple(self._each(datasets, _described)),
            reads=tuple(self._reads()),
            problems=tuple(self._facets.problems),
            coverage=coverage,
        )

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
        inputs = {reference(*key): None for run in self._runs for key in run.inputs}
        outputs = {reference(*key): None for run in self._runs for key in run.outputs}
        return JobFlow(job=self._urn, inputs=tuple(inputs), outputs=tuple(outputs))

    def _edges(self) -> tuple[tuple[ReportedEdge, ...], Coverage]:
        """The edges to each output as the newest run that wrote it has them.

        A run that did not come to its end may not have told all, so that one that did goes before.
        """
        writers: dict[DatasetKey, Run] = {}
        for run in sorted(self._runs, key=lambda each: each.state == "COMPLETE"):
            writers |= dict.fromkeys(run.outputs, run)
        edges: list[ReportedEdge] = []
        coverage = Coverage()
        for output, run in writers.items():
            seen = run.outputs[output]
            lifecycle = self._facets.read(seen.facets, Lifecycle)
            if lifecycle and (lifecycle.lifecycle_state_change or "").upper() == "DROP":
                continue
            lineage = self._facets.read(seen.facets, ColumnLineage)
            if run.inputs or lineage is not None:
                coverage += _coverage(self._facets.read(seen.facets, SchemaFacet), lineage)
            edges += _edges_to(output, run.inputs, lineage, job=self._urn)
        return tuple(edges), coverage

    def _reads(self) -> Iterator[Read]:
        """A run reads each of its inputs once; only runs that took place read anything."""
        for run in self._runs:
            if run.run_id is None:
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
                    columns=tuple(sorted(columns.get(key, ()))),
                    bytes=sizes.bytes if sizes.size is None else sizes.size,
                    rows=sizes.row_count,
                )

    def _sizes(self, seen: Seen) -> Sizes:
        for name in _SIZES:
            for facets in (seen.own_facets, seen.facets):
                if (found := self._facets.read(facets, Sizes, name)) is not None:
                    return found
        return Sizes()


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


def _dataset_report(key: DatasetKey, seen: Seen) -> Reported:
    place = f"openlineage:dataset:{key.namespace}/{key.name}"
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
