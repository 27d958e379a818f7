"""What commands print as JSON and the SDK returns; these names are a promise."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from lumos.analysis.report import ChangeRow, change_rows
from lumos.analysis.wording import blast_radius_of, breakage_of, clause_of, gone_clause
from lumos.engine.profiles.privacy import guarded, guarded_statistics
from lumos.model.change import (
    Affected,
    AffectedUse,
    BlastRadius,
    ChangeEvent,
    EventType,
    Verdict,
)
from lumos.model.codec import to_plain
from lumos.model.dataset import (
    ColumnStatistics,
    Dataset,
    DriftedShape,
    Location,
    Statistics,
    Versioning,
)
from lumos.model.discovery import Problem, Suggestion
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.urn import display_names
from lumos.store import KnownDataset, State

FORMAT_VERSION: Final = "1.0"

ChangeWord = Literal["new", "changed", "unchanged"]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A value that leaves Lumos."""


class FieldReport(Report, frozen=True, kw_only=True):
    name: str
    type: str
    nullable: bool
    key: bool
    partition: bool
    default: str | None
    description: str | None
    tags: tuple[str, ...]
    # As the place itself writes the type, where what is native to it was asked for.
    native_type: str | None = None
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    # What is said of fields inside the column.
    nested: tuple[NestedField, ...] = ()
    # By which a table knows the column, however it is called.
    field_id: int | UnsetType = UNSET

    @classmethod
    def of(cls, field: Field, *, native: bool = False) -> "FieldReport":
        return cls(
            name=field.name,
            type=field.type.text,
            nullable=field.nullable,
            key=field.key,
            partition=field.partition,
            default=field.default,
            description=field.description,
            tags=field.tags,
            native_type=field.native_type if native else None,
            terms=field.terms,
            compliance=field.compliance,
            properties=field.properties,
            nested=tuple(
                note
                for note in field.nested
                if _says_something(note) or (native and note.field_id is not None)
            ),
            field_id=field.field_id if native and field.field_id is not None else UNSET,
        )


def _says_something(note: NestedField) -> bool:
    words = note.description, note.tags, note.terms, note.compliance, note.properties
    return any(words) or note.default is not None


class SchemaReport(Report, frozen=True, kw_only=True):
    fields: tuple[FieldReport, ...]

    @classmethod
    def of(cls, schema: Schema | None, *, native: bool = False) -> "SchemaReport":
        fields = schema.fields if schema else ()
        return cls(fields=tuple(FieldReport.of(field, native=native) for field in fields))


class LocationReport(Report, frozen=True, kw_only=True):
    uri: str
    partitioning: str | None
    partition_keys: tuple[str, ...]

    @classmethod
    def of(cls, location: Location | None) -> "LocationReport | None":
        if location is None:
            return None
        return cls(
            uri=location.uri,
            partitioning=location.partitioning,
            partition_keys=location.partition_keys,
        )


class StatisticsReport(Report, frozen=True, kw_only=True):
    file_count: int
    total_size_bytes: int
    total_size_exact: bool
    bytes_by_class: dict[str, int]
    row_count: int | None
    row_count_exact: bool
    last_modified: datetime | None
    alternating: bool
    columns: dict[str, ColumnStatistics]

    @classmethod
    def of(cls, statistics: Statistics | None) -> "StatisticsReport | None":
        if statistics is None:
            return None
        return cls(
            file_count=statistics.file_count,
            total_size_bytes=statistics.total_size_bytes,
            total_size_exact=statistics.total_size_exact,
            bytes_by_class=statistics.bytes_by_class,
            row_count=statistics.row_count,
            row_count_exact=statistics.row_count_exact,
            last_modified=statistics.last_modified,
            alternating=statistics.alternating,
            columns=statistics.columns,
        )


class VersioningReport(Report, frozen=True, kw_only=True):
    cloud_version: str
    schema_version: str

    @classmethod
    def of(cls, versioning: Versioning | None) -> "VersioningReport | None":
        if versioning is None:
            return None
        return cls(cloud_version=versioning.cloud_version, schema_version=versioning.schema_version)


def flags_of(schema: Schema | None) -> tuple[str, ...]:
    """What engines may stumble over in a schema."""
    same = schema.names_that_differ_only_in_case() if schema else ()
    return tuple(f"case-only: {', '.join(names)}" for names in same)


class AffectedUseReport(Report, frozen=True, kw_only=True):
    """Where a dataset uses what changed, why that breaks it, and all of it in one sentence.

    `path` is that of the change, '' where the dataset as a whole changed or nobody knows more.
    """

    path: str
    change: str
    reason: str
    file: str | None
    line: int | None
    sentence: str


class AffectedDataset(Report, frozen=True, kw_only=True):
    """A dataset down the stream that breaks or may break, whose it was then, and where."""

    urn: str
    name: str
    verdict: Verdict
    owners: tuple[str, ...]
    uses: tuple[AffectedUseReport, ...]

    @classmethod
    def of(cls, found: Affected, *, name: str, clauses: Mapping[str, str]) -> "AffectedDataset":
        uses = found.uses or (AffectedUse(),)
        return cls(
            urn=found.urn,
            name=name,
            verdict=found.verdict,
            owners=found.owners,
            uses=tuple(
                AffectedUseReport(
                    path=use.path,
                    change=(clause := clauses.get(use.path, "")),
                    reason=use.reason,
                    file=use.file,
                    line=use.line,
                    sentence=": ".join(filter(None, (clause, breakage_of(found, name, use)))),
                )
                for use in uses
            ),
        )


class AffectedReport(Report, frozen=True, kw_only=True):
    """What a change does down the stream; the worst are named first, 1,000 at most.

    `problem` says why it is not known, and `summary` all of it in a few words.
    """

    summary: str
    breaking: int
    undetermined: int
    owners: tuple[str, ...]
    datasets: tuple[AffectedDataset, ...]
    problem: str | None

    @classmethod
    def of(cls, *events: ChangeEvent) -> "AffectedReport | None":
        """What events of one dataset do; None where nothing was known to be downstream."""
        known = [each.affected for each in events if each.affected is not None]
        if not known:
            return None
        found = known[0] if len(known) == 1 else _taken_together(known)
        names = display_names([each.urn for each in found.datasets], {})
        clauses: dict[str, str] = {}
        for event in events:
            if event.type is EventType.DELETED:
                clauses[""] = gone_clause(event.urn)
            for finding in event.findings:
                clauses.setdefault(finding.change.path, clause_of(finding))
        return cls(
            summary=blast_radius_of(found),
            breaking=found.breaking,
            undetermined=found.undetermined,
            owners=found.owners,
            datasets=tuple(
                AffectedDataset.of(each, name=names[each.urn], clauses=clauses)
                for each in found.datasets
            ),
            problem=found.problem,
        )


def _taken_together(known: Sequence[BlastRadius]) -> BlastRadius:
    """What several changes of one dataset do: each dataset once, by the worst verdict."""
    datasets: dict[str, Affected] = {}
    for each in (affected for found in known for affected in found.datasets):
        before = datasets.get(each.urn, each)
        # Of one place that several changes reach, the first says it all.
        uses = {use.path: use for use in (*each.uses, *before.uses)}
        is_breaking = Verdict.BREAKING in (each.verdict, before.verdict)
        datasets[each.urn] = msgspec.structs.replace(
            each,
            verdict=Verdict.BREAKING if is_breaking else each.verdict,
            uses=tuple(uses.values()),
        )
    worst_first = sorted(datasets.values(), key=lambda each: each.verdict is not Verdict.BREAKING)
    breaking = sum(each.verdict is Verdict.BREAKING for each in worst_first)
    return BlastRadius(
        # Counts may be of more than are named.
        breaking=max(breaking, *(each.breaking for each in known)),
        undetermined=max(
            len(worst_first) - breaking,
            *(each.undetermined for each in known if each.count > len(each.datasets)),
            0,
        ),
        datasets=tuple(worst_first),
        problem=next((each.problem for each in known if each.problem is not None), None),
    )


class DatasetReport(Report, frozen=True, kw_only=True):
    """A dataset as a scan found it, what that changed, and the event that says so in words.

    Where a log tells of several changes since the last scan, they follow one another. `affected`
    is what they break downstream, null where nothing was known to be made from the dataset.
    """

    urn: str
    name: str
    platform: str
    format: str | None
    location: LocationReport | None
    schema: SchemaReport
    statistics: StatisticsReport | None
    versioning: VersioningReport | None
    change: ChangeWord
    changes: tuple[ChangeRow, ...]
    event: str | None
    summary: str
    flags: tuple[str, ...]
    drift: tuple[DriftedShape, ...]
    affected: AffectedReport | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        change: ChangeWord,
        event: ChangeEvent | None = None,
        earlier: tuple[ChangeEvent, ...] = (),
    ) -> "DatasetReport":
        events = [each for each in (*earlier, event) if each is not None]
        return cls(
            urn=dataset.urn,
            name=dataset.name,
            platform=dataset.platform,
            format=dataset.format,
            location=LocationReport.of(dataset.location),
            schema=SchemaReport.of(dataset.schema),
            statistics=StatisticsReport.of(guarded_statistics(dataset)),
            versioning=VersioningReport.of(dataset.versioning),
            change=change,
            changes=tuple(
                row for each in events for row in change_rows(dataset.urn, each.findings)
            ),
            event=None if event is None else event.type.value,
            summary="; ".join(each.summary for each in events),
            flags=flags_of(dataset.schema),
            drift=dataset.drift or (),
            affected=AffectedReport.of(*events),
        )


class IngestSummary(Report, frozen=True, kw_only=True):
    files_listed: int = 0
    files_read: int = 0
    files_unchanged: int = 0
    files_failed: int = 0
    files_skipped: int = 0
    tables: int = 0
    tables_read: int = 0
    datasets_new: int = 0
    datasets_changed: int = 0
    datasets_unchanged: int = 0
    datasets_missing: int = 0
    # Of fields, and of datasets that are gone.
    breaking_changes: int = 0
    undetermined_changes: int = 0
    seconds: float = 0.0


class RefusedNews(Report, frozen=True, kw_only=True):
    """An entry that the catalog does not take; it is tried again the next time."""

    kind: str
    key: str
    problem: str


class ToldConflict(Report, frozen=True, kw_only=True):
    """Something that people and Lumos both changed since Lumos last wrote; theirs was kept."""

    key: str
    path: str
    theirs: str
    ours: str


class TellingReport(Report, frozen=True, kw_only=True):
    """What a catalog was told; `problem` says why the rest waits, where it does.

    `told` are datasets, `unchanged` those of them that the catalog had just so, `hidden` those that
    are gone; `items` is what is no dataset. A catalog that `is_down` does nothing at all for us;
    where it is asked again and again, it is left in peace until `next_try`.
    """

    format_version: str = FORMAT_VERSION
    platform: str
    kind: str
    told: int = 0
    unchanged: int = 0
    hidden: int = 0
    items: int = 0
    waiting: int = 0
    refused: tuple[RefusedNews, ...] = ()
    conflicts: tuple[ToldConflict, ...] = ()
    problem: str | None = None
    status: int | None = None
    is_down: bool = False
    next_try: datetime | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the catalog has heard of everything."""
        return self.problem is None and not self.refused

    @property
    def complaint(self) -> str | None:
        """Why something waits, and for what, in a sentence."""
        if self.problem is None:
            return None
        why = self.problem if self.status is None else str(self.status)
        things = "dataset waits" if self.waiting == 1 else "datasets wait"
        when = "the next scan"
        if self.next_try is not None:
            when = f"a scan after {self.next_try:%H:%M:%S} UTC"
        return (
            f"{self.kind}: {self.waiting:,} {things} to be published ({why}); "
            f"{when} or `lumos sync` retries"
        )


class Measurement(Report, frozen=True, kw_only=True):
    """A dataset whose rows were measured: how many they are, and the share of filled cells."""

    urn: str
    rows: int
    completeness: float | None
    seconds: float


class SplitDataset(Report, frozen=True, kw_only=True):
    """A dataset that came apart, and the first 1,000 of the `part_count` datasets in its place."""

    urn: str
    summary: str
    parts: tuple[str, ...]
    part_count: int

    @classmethod
    def of(cls, event: ChangeEvent) -> "SplitDataset":
        return cls(
            urn=event.urn,
            summary=event.summary,
            parts=tuple(str(event.metadata["parts"]).split()),
            part_count=int(event.metadata["part_count"]),
        )


class GoneDataset(Report, frozen=True, kw_only=True):
    """A dataset that is no longer there, and what that breaks downstream."""

    urn: str
    affected: AffectedReport | None


class IngestReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos ingest`; `held` names missing datasets that were not yet removed.

    `gone` tells of each of the `missing` datasets what breaks without it.

    `splits` are datasets that came apart because their files are grouped in another way now.
    `catalog` is what the configured catalog was told, if there is one. `measured` are datasets that
    were profiled.
    """

    format_version: str = FORMAT_VERSION
    summary: IngestSummary
    roots: tuple[str, ...]
    datasets: tuple[DatasetReport, ...]
    missing: tuple[str, ...]
    held: tuple[str, ...]
    problems: tuple[Problem, ...]
    gone: tuple[GoneDataset, ...] = ()
    splits: tuple[SplitDataset, ...] = ()
    catalog: TellingReport | None = None
    measured: tuple[Measurement, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def affected(self) -> tuple[AffectedReport, ...]:
        """What the changes do downstream, as far as anything is known to be there."""
        found = [each.affected for each in self.datasets]
        found += [each.affected for each in self.gone]
        return tuple(each for each in found if each is not None)

    @property
    def verdict(self) -> Verdict:
        """The gravest of all changes, and of what they do downstream."""
        if self.summary.breaking_changes or any(each.breaking for each in self.affected):
            return Verdict.BREAKING
        is_open = any(each.undetermined or each.problem for each in self.affected)
        return (
            Verdict.UNDETERMINED
            if is_open or self.summary.undetermined_changes
            else Verdict.COMPATIBLE
        )


class DiscoverSummary(Report, frozen=True, kw_only=True):
    files_listed: int
    files_failed: int
    files_skipped: int = 0
    tables: int = 0
    datasets: int
    complete: bool
    seconds: float


class DiscoverReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos discover`; `config` is the file that was written, if one was."""

    format_version: str = FORMAT_VERSION
    summary: DiscoverSummary
    roots: tuple[str, ...]
    datasets: tuple[DatasetReport, ...]
    problems: tuple[Problem, ...]
    config: str | None = None
    suggestions: tuple[Suggestion, ...] = ()


class ListedDataset(Report, frozen=True, kw_only=True):
    urn: str
    name: str
    platform: str
    format: str | None
    cloud_version: str
    schema_version: str
    fingerprint: str
    updated_at: datetime

    @classmethod
    def of(cls, known: KnownDataset) -> "ListedDataset":
        return cls(**{name: getattr(known, name) for name in cls.__struct_fields__})


class ListReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos list`."""

    format_version: str = FORMAT_VERSION
    datasets: tuple[ListedDataset, ...]


class ShowReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos show`: the dataset with every aspect that is known.

    `split` names the datasets that took its place, where it was split.
    """

    format_version: str = FORMAT_VERSION
    state: State
    dataset: dict[str, Any]
    split: SplitDataset | None = None

    @classmethod
    def of(
        cls, dataset: Dataset, *, state: State, split: SplitDataset | None = None
    ) -> "ShowReport":
        plain = to_plain(msgspec.structs.replace(dataset, quality=guarded(dataset)))
        plain["schema"] = to_plain(SchemaReport.of(dataset.schema, native=True))
        plain["statistics"] = to_plain(StatisticsReport.of(guarded_statistics(dataset)))
        plain["location"] = to_plain(LocationReport.of(dataset.location))
        plain["flags"] = list(flags_of(dataset.schema))
        return cls(state=state, dataset=plain, split=split)


class ExplainedDataset(Report, frozen=True, kw_only=True):
    """A dataset and the rule that made it one; `files_here` are those that were asked about."""

    urn: str
    location: str
    format: str
    rule: str
    reason: str
    files_here: int
    files: int


class PartitionValue(Report, frozen=True, kw_only=True):
    """A hive key, or the placeholder of a date in the path, and its value."""

    key: str
    value: str


class FileCount(Report, frozen=True, kw_only=True):
    """How many files of a folder belong to no dataset for one reason."""

    verdict: str
    reason: str
    files: int


class ExplainReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos explain`; `scanned_at` is missing where it was decided afresh.

    `verdict` is one of dataset, hidden, excluded, not_data, accompanies, unreadable and folder, in
    a table also log and not_live.
    `is_new` if the file was not there, or not seen, at the last scan.
    """

    format_version: str = FORMAT_VERSION
    path: str
    kind: Literal["file", "folder"]
    root: str
    scanned_at: datetime | None
    verdict: str
    reason: str
    code: str | None = None
    datasets: tuple[ExplainedDataset, ...]
    partitions: tuple[PartitionValue, ...] = ()
    shape: str | None = None
    drifts: bool = False
    is_new: bool = False
    others: tuple[FileCount, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()


class StoreReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos db status`."""

    format_version: str = FORMAT_VERSION
    store: str
    revision: str | None
    newest_revision: str
    rows: dict[str, int]


class UpgradeReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos db upgrade`."""

    format_version: str = FORMAT_VERSION
    store: str
    before: str | None
    after: str


class SearchResult(Report, frozen=True, kw_only=True):
    urn: str
    name: str
    platform: str
    format: str | None
    location: str | None
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    quality: float | None
    schema_version: str | None
    last_modified: datetime | None
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, fields: tuple[str, ...]) -> "SearchResult":
        return cls(
            urn=dataset.urn,
            name=dataset.name,
            platform=dataset.platform,
            format=dataset.format,
            location=dataset.location.uri if dataset.location else None,
            description=dataset.documentation.description if dataset.documentation else None,
            owners=tuple(owner.name for owner in dataset.ownership.owners)
            if dataset.ownership
            else (),
            tags=dataset.governance.tags if dataset.governance else (),
            quality=dataset.quality.score if dataset.quality else None,
            schema_version=dataset.versioning.schema_version if dataset.versioning else None,
            last_modified=dataset.statistics.last_modified if dataset.statistics else None,
            fields=fields,
        )


class SearchReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos search`; unless `all_counted`, at least `total` datasets match.

    Without any results, `suggestion` is a query that finds some.
    """

    format_version: str = FORMAT_VERSION
    query: str
    total: int
    all_counted: bool
    results: tuple[SearchResult, ...]
    suggestion: str | None = None
