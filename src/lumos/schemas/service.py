"""The service behind `lumos schema`: diff, predict, history, timeline, evolution and export."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations, groupby, pairwise, starmap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, assert_never

import msgspec
from msgspec import UNSET

from lumos.errors import MisuseError
from lumos.model.dataset import Dataset
from lumos.model.json_codec import to_json
from lumos.model.schema import parse_schema
from lumos.model.time_expression import parse_time
from lumos.model.urn import SCHEME
from lumos.schemas.changes import milestones_of
from lumos.schemas.diff import diff_datasets, diff_pair
from lumos.schemas.diff_inputs import (
    DiffSide,
    NotComparable,
    SchemaHistory,
    SnapshotFile,
    check_not_a_file,
    read_side,
    read_snapshot_schemas,
)
from lumos.schemas.export import (
    RecordedUrn,
    align_urns,
    export_schemas,
    is_same_dataset,
    portable_urns,
)
from lumos.schemas.files import UNNAMED_PLATFORM, DatasetSchema, read_folders
from lumos.schemas.git_revisions import GitRepository
from lumos.schemas.output import require_text, write_output
from lumos.schemas.proposals import complete_proposal
from lumos.schemas.reports import (
    DatasetEvolution,
    DiffReport,
    EvolutionReport,
    EvolutionStep,
    HistoryReport,
    PredictReport,
    ProposalSource,
    RevisionsReport,
    SchemaExportReport,
    TimelineEntry,
    TimelineReport,
    VersionReport,
    summarise_evolution,
)
from lumos.store import KnownDataset, NoStore, Store
from lumos.store.errors import UnknownDataset
from lumos.store.history import RecordedSchemaVersion, SchemaStep

if TYPE_CHECKING:
    from lumos.model.conversions.sql_types import Dialect
    from lumos.schemas.proposal_reader import ProposalKind

ReportT = TypeVar("ReportT", bound=DiffReport)


class VersionPair(NamedTuple):
    """Two schema versions of a dataset."""

    old: str
    new: str


class ComparedHistory(NamedTuple):
    """The history of a dataset, and the differences between its versions."""

    history: HistoryReport
    diffs: dict[VersionPair, DiffReport]


class Schemas:
    """Compares schemas, and shows their history; opens the store only when it is needed."""

    def __init__(
        self, store: Callable[[], Store], *, require_tracking: Callable[[], None] = lambda: None
    ) -> None:
        self._open = store
        # Raises an error if schema tracking is disabled.
        self._require_tracking = require_tracking

    def diff(
        self,
        before: str | Path,
        after: str | Path,
        *,
        output: str | Path | None = None,
        read_files: bool = True,
    ) -> DiffReport:
        """The changes from one schema, or folder of schemas, to another.

        Each side is a `.schema` file, a folder with such files, a snapshot, or a dataset. A dataset
        is given as its URN or unique name, optionally followed by a version or time, such as
        `@2.1.0`, `@S-312` or `@2024-01-15`. Without `read_files`, both sides are datasets.
        """
        self._require_tracking()
        require_text(str(before), "first schema"), require_text(str(after), "second schema")
        sides = (str(before), str(after))
        old, new = map(read_side, sides) if read_files else (None, None)
        report = _compare_sides(
            self._schema_of_dataset(sides[0], as_text=new is not None, may_be_file=read_files)
            if old is None
            else old,
            self._schema_of_dataset(sides[1], as_text=old is not None, may_be_file=read_files)
            if new is None
            else new,
        )
        return _save(report, output)

    def diff_revisions(
        self,
        base: str,
        head: str,
        *,
        folder: str | Path | None = None,
        output: str | Path | None = None,
    ) -> RevisionsReport:
        """The changes in a folder of schemas, from the merge base of two git revisions to `head`.

        The default folder is `schemas` in the current folder, or else in the repository root.
        """
        self._require_tracking()
        name = None if folder is None else require_text(str(folder), "folder")
        advice = "Compare two folders instead: lumos schema diff OLD_FOLDER NEW_FOLDER"
        repository = GitRepository(Path.cwd(), advice=advice)
        schemas = repository.compare(base, head, folder=name)
        report = diff_datasets(align_urns(schemas.before, schemas.after), schemas.after)
        revisions = RevisionsReport(
            datasets=report.datasets, summary=report.summary, remarks=schemas.remarks or UNSET
        )
        return _save(revisions, output)

    def predict(
        self,
        name: str,
        proposed: str | Path,
        *,
        kind: "ProposalKind | None" = None,
        model: str | None = None,
        dialect: "Dialect | None" = None,
        output: str | Path | None = None,
    ) -> PredictReport:
        """Predict what breaks if a dataset gets the schema in a file.

        `kind` overrides the detected kind of the file, `model` selects one of its tables or models,
        and `dialect` is the dialect of its SQL types.
        """
        # Imported late: only needed here.
        from lumos.schemas.proposal_reader import ProposalTarget, read_proposal

        require_text(str(proposed), "file of the proposed schema")
        schemas = self._history()
        dataset = schemas.find(name)
        current = schemas.schema(dataset.urn)
        target = ProposalTarget(
            name=dataset.name, platform=dataset.platform, model=model, dialect=dialect
        )
        proposal = read_proposal(Path(proposed), kind=kind, target=target)
        rendered = proposal.render(current.schema)
        schema = complete_proposal(current.schema, rendered, proposal.schema, proposal.format)
        after = msgspec.structs.replace(current, schema=schema)
        diff = diff_pair(current, after, urn=dataset.urn)
        report = PredictReport(
            datasets=diff.datasets,
            summary=diff.summary,
            proposed=ProposalSource(file=str(proposed), kind=proposal.kind),
            remarks=proposal.remarks,
        )
        return _save(report, output)

    def history(self, name: str, *, as_of: str | None = None) -> HistoryReport:
        """All schema versions of a dataset until `as_of` (default: now), newest first."""
        self._require_tracking()
        store = self._open()
        dataset, versions = self._versions(store, name, as_of=as_of)
        known = store.known_dataset(dataset.urn)
        report = _histories(store, [known], {known.urn: versions})[known.urn]
        if as_of is None:
            return report
        end = parse_time(as_of, now=datetime.now(UTC), end=True)
        milestones = tuple(each for each in report.milestones if each.timestamp <= end)
        return msgspec.structs.replace(report, milestones=milestones)

    def compared_histories(
        self, urns: Collection[str], *, latest: int
    ) -> dict[str, ComparedHistory]:
        """The histories of datasets by current URN, read with a few SQL statements.

        Each version is compared with the next one, and the `latest` versions with each other.
        """
        self._require_tracking()
        store = self._open()
        known, versions = store.known_datasets(urns), store.schemas.versions_of(urns)
        histories = _histories(store, known.values(), versions)
        return {
            urn: ComparedHistory(
                histories[urn], _compare_versions(dataset, versions.get(urn, ()), latest)
            )
            for urn, dataset in known.items()
        }

    def timeline(self, name: str, *, as_of: str | None = None) -> TimelineReport:
        """The schema versions of a dataset in brief, oldest first."""
        self._require_tracking()
        dataset, versions = self._versions(self._open(), name, as_of=as_of)
        return TimelineReport(
            urn=dataset.urn, name=dataset.name, versions=tuple(map(TimelineEntry.of, versions))
        )

    def evolution(
        self, name: str | None = None, *, since: str | None = None, until: str | None = None
    ) -> EvolutionReport:
        """Count the changes of one or all datasets in a period, by default the entire history."""
        self._require_tracking()
        now = datetime.now(UTC)
        start = None if since is None else parse_time(since, now=now)
        # Days in the future would lower the change frequency.
        end = now if until is None else min(now, parse_time(until, now=now, end=True))
        if start is not None and start > end:
            raise MisuseError(
                f"The period ends ({end:%Y-%m-%d}) before it begins ({start:%Y-%m-%d})."
            )
        store = self._open()
        dataset = None if name is None else SchemaHistory(store, now=now).find(name)
        urn = None if dataset is None else dataset.urn
        steps = list(store.schemas.steps(urn=urn, since=start, until=end))
        start = start or min((step.recorded_at for step in steps), default=end)
        by_dataset = {
            urn: list(dataset_steps)
            for urn, dataset_steps in groupby(steps, key=lambda step: step.urn)
        }
        datasets = [
            _evolution(dataset_steps[0].urn, dataset_steps[0].name, dataset_steps, start, end)
            for dataset_steps in by_dataset.values()
        ]
        if dataset is not None and not datasets:
            datasets = [_evolution(dataset.urn, dataset.name, [], start, end)]
        return EvolutionReport(
            period_start=start,
            period_end=end,
            datasets=tuple(
                sorted(
                    datasets,
                    key=lambda each: (-each.breaking_changes, -each.total_changes, each.urn),
                )
            ),
            summary=summarise_evolution([step.event for step in steps], start=start, end=end),
        )

    def export(self, folder: str | Path) -> SchemaExportReport:
        """Write the schema of each live dataset to a text file of its own.

        The files of local datasets are named after their paths relative to the root of the source.
        """
        require_text(str(folder), "folder")
        archive = self._open().schemas
        urns = portable_urns(starmap(RecordedUrn, archive.sources()))
        datasets = (
            DatasetSchema(
                urn=urns[live.urn],
                schema=live.schema,
                version=live.schema_version,
                format=live.format,
            )
            for live in archive.live()
        )
        return export_schemas(datasets, Path(folder))

    def _versions(
        self, store: Store, name: str, *, as_of: str | None
    ) -> tuple[Dataset, tuple[RecordedSchemaVersion, ...]]:
        schemas = SchemaHistory(store, now=datetime.now(UTC))
        dataset = schemas.find(name)
        versions = store.schemas.versions(dataset.urn)
        if as_of is not None:
            last = schemas.as_of(dataset, as_of).record.number
            versions = tuple(each for each in versions if each.record.number <= last)
        return dataset, versions

    def _schema_of_dataset(self, text: str, *, as_text: bool, may_be_file: bool) -> DatasetSchema:
        """The schema of a dataset; with `as_text`, without what a schema file cannot express."""
        try:
            dataset = self._history().schema(text)
        except (UnknownDataset, NoStore):
            if may_be_file:
                check_not_a_file(text)
            raise
        if not as_text:
            return dataset
        return msgspec.structs.replace(dataset, schema=parse_schema(str(dataset.schema)))

    def _history(self) -> SchemaHistory:
        return SchemaHistory(self._open(), now=datetime.now(UTC))


def _histories(
    store: Store,
    datasets: Collection[KnownDataset],
    versions: Mapping[str, Sequence[RecordedSchemaVersion]],
) -> dict[str, HistoryReport]:
    alerts = store.notification_outbox.alerts(
        version.event.event_id
        for dataset_versions in versions.values()
        for version in dataset_versions
    )
    states = {event_id: alert.state for event_id, alert in alerts.items()}
    milestones = milestones_of(store, datasets)
    return {
        dataset.urn: HistoryReport(
            urn=dataset.urn,
            name=dataset.name,
            versions=tuple(
                VersionReport.of(dataset.urn, each, states.get(each.event.event_id))
                for each in reversed(versions.get(dataset.urn, ()))
            ),
            milestones=milestones[dataset.urn],
        )
        for dataset in datasets
    }


def _compare_versions(
    dataset: KnownDataset, versions: Sequence[RecordedSchemaVersion], latest: int
) -> dict[VersionPair, DiffReport]:
    schemas = {
        each.record.version: DatasetSchema(
            urn=dataset.urn,
            schema=each.record.schema,
            version=each.record.version,
            format=dataset.format,
        )
        for each in versions
    }
    names = list(schemas)
    pairs = {*combinations(names[-latest:], 2), *pairwise(names)}
    return {
        VersionPair(old, new): diff_pair(schemas[old], schemas[new], urn=dataset.urn)
        for old, new in sorted(pairs)
    }


def _compare_sides(old: DiffSide, new: DiffSide) -> DiffReport:
    if isinstance(old, DatasetSchema) and isinstance(new, DatasetSchema):
        if is_same_dataset(old.urn, new.urn):
            # The URN has the full path in a store, but only the end of the path in an export.
            urn = max(old.urn, new.urn, key=len)
            old, new = (msgspec.structs.replace(side, urn=urn) for side in (old, new))
        # If only the old schema has a URN, use it: the new file then describes the same dataset.
        unnamed = f"{SCHEME}{UNNAMED_PLATFORM}/"
        has_only_old_urn = new.urn.startswith(unnamed) and not old.urn.startswith(unnamed)
        return diff_pair(old, new, urn=old.urn if has_only_old_urn else new.urn)
    if isinstance(old, SnapshotFile) and isinstance(new, SnapshotFile):
        return diff_datasets(*read_snapshot_schemas(old, new))
    if isinstance(old, Path) and isinstance(new, Path):
        before, after = read_folders(old, new)
        return diff_datasets(align_urns(before, after), after)
    raise NotComparable(
        f"One of the two is {_kind(old)}, the other {_kind(new)}. Compare two of the same kind."
    )


def _kind(side: DiffSide) -> str:
    match side:
        case DatasetSchema():
            return "a single schema"
        case SnapshotFile():
            return "a snapshot"
        case Path():
            return "a folder of schemas"
        case _ as unreachable:
            assert_never(unreachable)


def _save(report: ReportT, output: str | Path | None) -> ReportT:
    if output is not None:
        write_output(output, to_json(report, indent=2) + b"\n")
    return report


def _evolution(
    urn: str, name: str, steps: list[SchemaStep], start: datetime, end: datetime
) -> DatasetEvolution:
    counts = summarise_evolution([step.event for step in steps], start=start, end=end)
    return DatasetEvolution(
        urn=urn,
        name=name,
        timeline=tuple(map(EvolutionStep.of, steps)),
        **msgspec.structs.asdict(counts),
    )
