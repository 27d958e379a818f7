"""The schemas of one store, as `Lumos().schema` offers them."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby, starmap
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, assert_never

import msgspec
from msgspec import UNSET

from lumos.errors import MisuseError
from lumos.model.change import ChangeEvent
from lumos.model.dataset import Dataset
from lumos.model.json_codec import to_json
from lumos.model.schema import parse_schema
from lumos.model.time_expression import parse_time
from lumos.model.urn import SCHEME
from lumos.schemas.bulk_comparison import compared, compared_pair
from lumos.schemas.changes import Milestone, milestones_of
from lumos.schemas.errors import NotComparable
from lumos.schemas.evolution import evolution
from lumos.schemas.export import export
from lumos.schemas.files import UNNAMED, Described, read_folders
from lumos.schemas.output import given, write_output
from lumos.schemas.portable import Recorded, aligned, is_same, portable_urns
from lumos.schemas.proposals import understood
from lumos.schemas.reports import (
    DatasetEvolution,
    DiffReport,
    EvolutionReport,
    EvolutionStep,
    ExportReport,
    HistoryReport,
    PredictReport,
    Proposed,
    RevisionsReport,
    TimelineEntry,
    TimelineReport,
    VersionReport,
)
from lumos.schemas.revisions import Repository
from lumos.schemas.sides import Shelf, Side, refuse_file, side_in_files
from lumos.schemas.snapshot_schemas import Estate, read_estates
from lumos.store import NoStore, Store
from lumos.store.archive import Step, Version
from lumos.store.errors import UnknownDataset

if TYPE_CHECKING:
    from lumos.model.conversions.sql_types import Dialect
    from lumos.schemas.proposal_reader import Kind

Told = TypeVar("Told", bound=DiffReport)


class Schemas:
    """Compares schemas and tells their history; the store is opened only where it is needed."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._open = store

    def diff(
        self, before: str | Path, after: str | Path, *, output: str | Path | None = None
    ) -> DiffReport:
        """What leads from one schema, or one folder of schemas, to another.

        A side is a `.schema` file, a folder of them, a snapshot, or a dataset: its URN or unique
        name, alone or with `@2.1.0`, `@S-312` or `@2024-01-15` behind it.
        """
        given(str(before), "first schema"), given(str(after), "second schema")
        old, new = side_in_files(str(before)), side_in_files(str(after))
        report = _compared(
            self._dataset(str(before), as_text=new is not None) if old is None else old,
            self._dataset(str(after), as_text=old is not None) if new is None else new,
        )
        return _kept(report, output)

    def diff_revisions(
        self,
        base: str,
        head: str,
        *,
        folder: str | Path | None = None,
        output: str | Path | None = None,
    ) -> RevisionsReport:
        """What a git revision changes in a folder of schemas since it left `base`.

        Without a folder, `schemas` is meant: the one here or, if there is none, that at the
        repository's root.
        """
        name = None if folder is None else given(str(folder), "folder")
        found = Repository(Path.cwd()).compared(base, head, folder=name)
        report = compared(aligned(found.before, found.after), found.after)
        told = RevisionsReport(
            datasets=report.datasets, summary=report.summary, remarks=found.remarks or UNSET
        )
        return _kept(told, output)

    def predict(
        self,
        name: str,
        proposed: str | Path,
        *,
        kind: "Kind | None" = None,
        model: str | None = None,
        dialect: "Dialect | None" = None,
        output: str | Path | None = None,
    ) -> PredictReport:
        """What would break if a dataset got the schema in a file.

        `kind` overrules what the file looks like, `model` names one of its tables or models, and
        `dialect` says whose SQL types they have.
        """
        # Other tools' types are many, and only this verb reads them.
        from lumos.schemas.proposal_reader import Wanted, read_proposal

        given(str(proposed), "file of the proposed schema")
        shelf = self._shelf()
        dataset = shelf.known(name)
        current = shelf.dataset(dataset.urn)
        wanted = Wanted(name=dataset.name, platform=dataset.platform, model=model, dialect=dialect)
        proposal = read_proposal(Path(proposed), kind=kind, wanted=wanted)
        rendered = proposal.rendered(current.schema)
        schema = understood(current.schema, rendered, proposal.schema, proposal.form)
        after = msgspec.structs.replace(current, schema=schema)
        found = compared_pair(current, after, urn=dataset.urn)
        report = PredictReport(
            datasets=found.datasets,
            summary=found.summary,
            proposed=Proposed(file=str(proposed), kind=proposal.kind),
            remarks=proposal.remarks,
        )
        return _kept(report, output)

    def history(self, name: str, *, as_of: str | None = None) -> HistoryReport:
        """Every schema version of a dataset, newest first; with `as_of` those that were then."""
        store = self._open()
        dataset, versions = self._versions(store, name, as_of=as_of)
        alerts = store.outbox.alerts(each.event.event_id for each in versions)
        states = {event_id: alert.state for event_id, alert in alerts.items()}
        return HistoryReport(
            urn=dataset.urn,
            name=dataset.name,
            versions=tuple(
                VersionReport.of(dataset.urn, each, states.get(each.event.event_id))
                for each in reversed(versions)
            ),
            milestones=_milestones(store, dataset.urn, as_of=as_of),
        )

    def timeline(self, name: str, *, as_of: str | None = None) -> TimelineReport:
        """The schema versions of a dataset at a glance, oldest first."""
        dataset, versions = self._versions(self._open(), name, as_of=as_of)
        return TimelineReport(
            urn=dataset.urn, name=dataset.name, versions=tuple(map(TimelineEntry.of, versions))
        )

    def evolution(
        self, name: str | None = None, *, since: str | None = None, until: str | None = None
    ) -> EvolutionReport:
        """How much one dataset or all changed over a period; by default over all of history."""
        now = datetime.now(UTC)
        start = None if since is None else parse_time(since, now=now)
        # Days to come had no chance to change anything.
        end = now if until is None else min(now, parse_time(until, now=now, end=True))
        if start is not None and start > end:
            raise MisuseError(
                f"The period ends ({end:%Y-%m-%d}) before it begins ({start:%Y-%m-%d})."
            )
        store = self._open()
        known = None if name is None else Shelf(store, now=now).known(name)
        urn = None if known is None else known.urn
        steps = list(store.archive.steps(urn=urn, since=start, until=end))
        start = start or min((step.recorded_at for step in steps), default=end)
        by_dataset = {urn: list(own) for urn, own in groupby(steps, key=lambda step: step.urn)}
        datasets = [_evolution(own, start, end) for own in by_dataset.values()]
        if known is not None and not datasets:
            datasets = [_no_evolution(known.urn, known.name, start, end)]
        return EvolutionReport(
            period_start=start,
            period_end=end,
            datasets=tuple(sorted(datasets, key=_most_first)),
            summary=evolution([step.event for step in steps], start=start, end=end),
        )

    def export(self, folder: str | Path) -> ExportReport:
        """Writes the schema of every dataset that is there as a text file of its own.

        Local datasets are called by their paths from the root of their source.
        """
        given(str(folder), "folder")
        archive = self._open().archive
        urns = portable_urns(starmap(Recorded, archive.sources()))
        datasets = (
            Described(
                urn=urns[live.urn],
                schema=live.schema,
                version=live.schema_version,
                format=live.format,
            )
            for live in archive.live()
        )
        return export(datasets, Path(folder))

    def _versions(
        self, store: Store, name: str, *, as_of: str | None
    ) -> tuple[Dataset, tuple[Version, ...]]:
        shelf = Shelf(store, now=datetime.now(UTC))
        dataset = shelf.known(name)
        versions = store.archive.versions(dataset.urn)
        if as_of is not None:
            last = shelf.as_of(dataset, as_of).record.number
            versions = tuple(each for each in versions if each.record.number <= last)
        return dataset, versions

    def _dataset(self, text: str, *, as_text: bool) -> Described:
        """A dataset of the store; for a comparison with a file only what a file can say of it."""
        try:
            found = self._shelf().dataset(text)
        except (UnknownDataset, NoStore):
            refuse_file(text)
            raise
        if not as_text:
            return found
        return msgspec.structs.replace(found, schema=parse_schema(str(found.schema)))

    def _shelf(self) -> Shelf:
        return Shelf(self._open(), now=datetime.now(UTC))


def _milestones(store: Store, urn: str, *, as_of: str | None) -> tuple[Milestone, ...]:
    found = milestones_of(store, store.ledger.known(urn))
    if as_of is None:
        return found
    end = parse_time(as_of, now=datetime.now(UTC), end=True)
    return tuple(each for each in found if each.timestamp <= end)


def _compared(old: Side, new: Side) -> DiffReport:
    if isinstance(old, Described) and isinstance(new, Described):
        if is_same(old.urn, new.urn):
            # The store knows a dataset by its whole path, and an export by the end of it.
            urn = max(old.urn, new.urn, key=len)
            old, new = (msgspec.structs.replace(side, urn=urn) for side in (old, new))
        # A file without a URN is about the dataset that it is compared with.
        is_named = not new.urn.startswith(f"{SCHEME}{UNNAMED}/")
        return compared_pair(old, new, urn=new.urn if is_named else _named(old, new))
    if isinstance(old, Estate) and isinstance(new, Estate):
        return compared(*read_estates(old, new))
    if isinstance(old, Path) and isinstance(new, Path):
        before, after = read_folders(old, new)
        return compared(aligned(before, after), after)
    raise NotComparable(
        f"One of the two is {_kind(old)}, the other {_kind(new)}. Give two of the same kind."
    )


def _kind(side: Side) -> str:
    match side:
        case Described():
            return "a single schema"
        case Estate():
            return "a snapshot"
        case Path():
            return "a folder of schemas"
        case _ as unreachable:
            assert_never(unreachable)


def _named(old: Described, new: Described) -> str:
    return new.urn if old.urn.startswith(f"{SCHEME}{UNNAMED}/") else old.urn


def _kept(report: Told, output: str | Path | None) -> Told:
    if output is not None:
        write_output(output, to_json(report, indent=2) + b"\n")
    return report


def _evolution(steps: list[Step], start: datetime, end: datetime) -> DatasetEvolution:
    events: list[ChangeEvent] = [step.event for step in steps]
    return DatasetEvolution(
        urn=steps[0].urn,
        name=steps[0].name,
        timeline=tuple(map(EvolutionStep.of, steps)),
        **msgspec.structs.asdict(evolution(events, start=start, end=end)),
    )


def _no_evolution(urn: str, name: str, start: datetime, end: datetime) -> DatasetEvolution:
    nothing = evolution([], start=start, end=end)
    return DatasetEvolution(urn=urn, name=name, timeline=(), **msgspec.structs.asdict(nothing))


def _most_first(dataset: DatasetEvolution) -> tuple[int, int, str]:
    return -dataset.breaking_changes, -dataset.total_changes, dataset.urn
