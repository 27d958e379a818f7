"""The service behind `lumos list`, `search` and `show`."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from lumos.config.secret import mask_arguments, redact
from lumos.datasets.reports import (
    ListedDataset,
    ListReport,
    OverviewReport,
    SearchReport,
    SearchResult,
    ShowReport,
    SourceOverview,
)
from lumos.datasets.trends import BreakingChange, TrendsReport, incidents_of, trends
from lumos.errors import MisuseError, UnknownName
from lumos.model.catalog import CatalogEntity, consumer_kind, consumer_name
from lumos.model.change import Verdict
from lumos.model.dataset import Dataset, Documentation, Lineage, Owner, Ownership, UpstreamEdge
from lumos.model.urn import Urn, display_names
from lumos.names import find_dataset, find_urn
from lumos.store import DatasetFilter, Facets, SourceCount, Store
from lumos.store.datasets import KnownDataset
from lumos.store.errors import UnknownDataset
from lumos.store.history import EventFilter

# The maximum number of tables in the result of a search that are only known from lineage.
_MAX_LINEAGE_ONLY: Final = 5
_MAX_MONTHS: Final = 36


class Datasets:
    """Lists, finds and shows the datasets of one store."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        existing_store: Callable[[], Store | None],
        hidden_aspects: Sequence[str] = (),
    ) -> None:
        self._store = store
        # Aspects of disabled features.
        self._hidden_aspects = hidden_aspects
        self._existing_store = existing_store

    def list(
        self,
        *,
        platform: str | None = None,
        format: str | None = None,
        contains: str | None = None,
        limit: int | None = None,
        after: str | None = None,
        lineage_only: bool = False,
    ) -> ListReport:
        """The live datasets that match the filters, or tables that are known from lineage only.

        Datasets are sorted by URN; the list starts after the URN `after`.
        """
        store = self._store()
        if lineage_only:
            if platform or format:
                raise MisuseError(
                    "Tables that are known from lineage only have no platform or format. "
                    "List all of them with: lumos list --lineage-only"
                )
            tables = store.lineage.outside(contains, limit=limit)
            count = store.lineage.count_outside(contains)
            return ListReport(datasets=(), lineage_only_count=count, lineage_only=tables)
        filter = DatasetFilter(
            platform=platform, format=format, contains=contains, after=after,
            limit=None if limit is None else limit + 1,
        )  # fmt: skip
        datasets = tuple(map(ListedDataset.copy_of, store.list(filter)))
        if not datasets:
            _check_format(store, format)
        return ListReport(
            datasets=datasets[:limit],
            has_more=limit is not None and len(datasets) > limit,
            lineage_only_count=0 if platform or format else store.lineage.count_outside(contains),
        )

    def search(
        self,
        text: str,
        *,
        platform: str | None = None,
        owner: str | None = None,
        tag: str | None = None,
        format: str | None = None,
        limit: int = 20,
    ) -> SearchReport:
        """The datasets that contain every word of a text, best first, with matching fields."""
        facets = Facets(platform=platform, owner=owner, tag=tag, format=format)
        store = self._store()
        datasets, hits = store.search(text, facets, limit=limit)
        if not datasets:
            _check_format(store, format)
        lineage_only = (
            {}
            if platform or tag or format
            else store.lineage.search_outside(text, owner=owner, limit=_MAX_LINEAGE_ONLY)
        )
        return SearchReport(
            query=mask_arguments([text], text),
            total=hits.total,
            all_counted=hits.all_counted,
            results=tuple(
                SearchResult.of(dataset, hits.fields.get(dataset.urn, ())) for dataset in datasets
            ),
            suggestion=hits.suggestion,
            lineage_only=tuple(lineage_only),
            lineage_only_owners={urn: names for urn, names in lineage_only.items() if names},
            consumers={
                urn: consumer_name(each)
                for urn, each in store.lineage.consumers(list(lineage_only)).items()
            },
        )

    def overview(self) -> OverviewReport:
        """Count the datasets with owners, descriptions and lineage, and list the sources."""
        store = self._store()
        return store.cached("overview", lambda: self._overview(store))

    def _overview(self, store: Store) -> OverviewReport:
        scans = {each.source: each.finished_at for each in store.scans()}
        coverage = store.cached("coverage", store.trends.coverage)
        by_source: dict[str, list[SourceCount]] = {source: [] for source in scans}
        for each in store.source_counts():
            by_source.setdefault(each.source, []).append(each)
        return OverviewReport(
            datasets=sum(each.datasets for counts in by_source.values() for each in counts),
            owned=sum(coverage.owned.values()),
            documented=sum(coverage.documented.values()),
            with_lineage=sum(coverage.with_lineage.values()),
            lineage_only=store.lineage.count_outside(None),
            sources=tuple(
                SourceOverview(
                    source=redact(source),
                    platforms=tuple(each.platform for each in counts),
                    datasets=sum(each.datasets for each in counts),
                    last_scan=scans.get(source),
                    last_change=max((each.updated_at for each in counts), default=None),
                )
                for source, counts in sorted(by_source.items())
            ),
        )

    def trends(self, months: int = 6) -> TrendsReport:
        """How coverage, incidents and duplicates developed in the last months, by month."""
        if not 1 <= months <= _MAX_MONTHS:
            raise MisuseError(f"Use between 1 and {_MAX_MONTHS} months, not {months}.")
        store, now = self._store(), datetime.now(UTC)
        starts = [_months_before(now, back) for back in range(months - 1, -1, -1)]
        changes = [
            BreakingChange(event.urn, event.at, broken)
            for event in store.change_log.events(EventFilter(since=starts[0], breaking=True))
            if event.affected is not None
            and (
                broken := tuple(
                    each.urn for each in event.affected.datasets if each.verdict is Verdict.BREAKING
                )
            )
        ]
        involved = {urn for each in changes for urn in (each.urn, *each.broken)}
        return trends(
            [*starts, now],
            coverage=store.cached("coverage", store.trends.coverage),
            incidents=incidents_of(changes, store.trends.repairs(involved, starts[0])),
            duplicates=store.cached("duplicates", store.trends.duplicates),
            prevented=store.trends.breaking_gate_results(starts[0]),
        )

    def show(self, name: str) -> ShowReport:
        """Show all aspects of a dataset."""
        store = self._store()
        try:
            known = find_dataset(store, name)
        except UnknownDataset:
            urn = find_urn(store, name, with_lineage=True)
            return self._assumed_reports([urn])[urn]
        if known.state == "missing":
            # The dataset may have been merged into another one, which is shown instead.
            known = store.known_dataset(store.resolve(known.urn))
        return self._report(known, store.dataset_of(known))

    def show_many(self, urns: Collection[str]) -> dict[str, ShowReport]:
        """Show datasets by current or former URN, with few queries; unknown URNs are omitted."""
        store = self._store()
        current = {urn: urn for urn in urns} | store.entries.former_names(urns)
        known = store.known_datasets(set(current.values()))
        datasets = store.get_many(known)
        reports = {urn: self._report(known[urn], each) for urn, each in datasets.items()}
        reports |= self._assumed_reports(set(current.values()) - known.keys())
        return {given: reports[urn] for given, urn in current.items() if urn in reports}

    def _report(self, known: KnownDataset, dataset: Dataset) -> ShowReport:
        # Imported late: `list` and `search` start faster without it.
        from lumos.schemas.changes import last_split

        split = last_split(self._store(), known.urn) if known.state == "split" else None
        return ShowReport.of(self._drop_disabled_aspects(dataset), state=known.state, split=split)

    def _assumed_reports(self, urns: Collection[str]) -> dict[str, ShowReport]:
        """Reports of datasets and consumers that only lineage mentions, such as SQL models."""
        if not urns:
            return {}
        lineage = self._store().lineage
        consumers, owners = lineage.consumers(urns), lineage.owners(urns)
        edges = lineage.of_datasets(urns)
        reports: dict[str, ShowReport] = {}
        for urn in edges.keys() | consumers.keys():
            dataset = _from_lineage(urn, edges.get(urn), owners.get(urn, ()), consumers.get(urn))
            kind = consumer_kind(consumers[urn]) if urn in consumers else None
            reports[urn] = ShowReport.of(
                self._drop_disabled_aspects(dataset), state="assumed", kind=kind
            )
        return reports

    def _drop_disabled_aspects(self, dataset: Dataset) -> Dataset:
        hidden = dict.fromkeys(self._hidden_aspects)
        return msgspec.structs.replace(dataset, **hidden) if hidden else dataset

    def data_platforms(self) -> tuple[str, ...]:
        """The platforms that datasets are stored on: s3, file, postgres and the like."""
        return self._store().data_platforms()

    def display_names(self, urns: Collection[str]) -> dict[str, str]:
        """Short names of datasets; for datasets that share a name, also the end of their paths."""
        store = self._existing_store()
        return display_names(urns, {} if store is None else store.names_like(urns))


def _months_before(now: datetime, back: int) -> datetime:
    """The start of the month that is `back` months before that of `now`."""
    number = now.year * 12 + now.month - 1 - back
    return datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)


def _check_format(store: Store, format: str | None) -> None:
    """Raise an error for a format that no dataset has."""
    known = store.formats()
    if format is not None and known and format.lower() not in map(str.lower, known):
        raise UnknownName(
            "format", format, known, listed="Formats of datasets", next="See all with: lumos list"
        )


def _from_lineage(
    urn: str, edges: Lineage | None, owners: Sequence[str], consumer: CatalogEntity | None
) -> Dataset:
    """A dataset or consumer that only lineage mentions, without the columns of its edges."""
    parsed, edges = Urn.parse(urn), edges or Lineage()
    return Dataset(
        urn=urn,
        name=parsed.name if consumer is None else consumer.display_name or parsed.name,
        platform=parsed.platform,
        documentation=None
        if consumer is None or consumer.description is None
        else Documentation(description=consumer.description),
        properties=None if consumer is None else consumer.properties or None,
        ownership=Ownership(owners=tuple(Owner(name=each) for each in owners)) if owners else None,
        lineage=Lineage(
            upstream=tuple(UpstreamEdge(urn=each.urn) for each in edges.upstream),
            downstream=tuple(UpstreamEdge(urn=each.urn) for each in edges.downstream),
        ),
    )
