"""Reports of `lumos list`, `show` and `search`."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from lumos.model.dataset import (
    ColumnStatistics,
    Dataset,
    Location,
    Statistics,
)
from lumos.model.json_codec import to_plain
from lumos.model.privacy import allowed_quality, allowed_statistics
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.schema import Schema
from lumos.schemas.changes import SplitDataset
from lumos.schemas.report_parts import SchemaReport
from lumos.store import DatasetState


def flags_of(schema: Schema | None) -> tuple[str, ...]:
    """Warnings about a schema that may confuse engines."""
    same = schema.names_that_differ_only_in_case() if schema else ()
    return tuple(f"case-only: {', '.join(names)}" for names in same)


class LocationReport(Report, frozen=True, kw_only=True):
    uri: str
    partitioning: str | None
    partition_keys: tuple[str, ...]

    @classmethod
    def of(cls, location: Location | None) -> "LocationReport | None":
        return None if location is None else cls.copy_of(location)


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
    partition_count: int | None = None

    @classmethod
    def of(cls, statistics: Statistics | None) -> "StatisticsReport | None":
        return None if statistics is None else cls.copy_of(statistics)


class ListedDataset(Report, frozen=True, kw_only=True):
    urn: str
    name: str
    platform: str
    format: str | None
    cloud_version: str
    schema_version: str
    fingerprint: str
    updated_at: datetime


class ListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos list`.

    `has_more` is set if more datasets match than the limit. `lineage_only_count` is the number of
    tables that are known from lineage but were not scanned; `lineage_only` lists them on request.
    """

    format_version: str = FORMAT_VERSION
    datasets: tuple[ListedDataset, ...]
    has_more: bool = False
    lineage_only_count: int = 0
    lineage_only: tuple[str, ...] = ()


class SourceOverview(Report, frozen=True, kw_only=True):
    """A source: its live datasets, its last finished scan and the last change of a dataset."""

    source: str
    platforms: tuple[str, ...]
    datasets: int
    last_scan: datetime | None
    last_change: datetime | None


class OverviewReport(Report, frozen=True, kw_only=True):
    """The report of `lumos overview`: sources, and counts of live datasets."""

    format_version: str = FORMAT_VERSION
    datasets: int
    owned: int
    documented: int
    with_lineage: int
    lineage_only: int
    sources: tuple[SourceOverview, ...]


class ShowReport(Report, frozen=True, kw_only=True):
    """The report of `lumos show`: the dataset with all its aspects.

    An `assumed` dataset is only known from lineage. `kind` is set if it is a consumer that stores
    no data, such as a dashboard. `split` lists its parts if it was split.
    """

    format_version: str = FORMAT_VERSION
    state: DatasetState | Literal["assumed"]
    dataset: dict[str, Any]
    split: SplitDataset | None = None
    kind: str | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        state: DatasetState | Literal["assumed"],
        split: SplitDataset | None = None,
        kind: str | None = None,
    ) -> "ShowReport":
        plain = to_plain(msgspec.structs.replace(dataset, quality=allowed_quality(dataset)))
        plain["schema"] = to_plain(SchemaReport.of(dataset.schema, native=True))
        plain["statistics"] = to_plain(StatisticsReport.of(allowed_statistics(dataset)))
        plain["location"] = to_plain(LocationReport.of(dataset.location))
        plain["flags"] = list(flags_of(dataset.schema))
        return cls(state=state, dataset=plain, split=split, kind=kind)


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
    domain: str | None = None
    terms: tuple[str, ...] = ()

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
            domain=dataset.documentation.domain if dataset.documentation else None,
            terms=dataset.governance.terms if dataset.governance else (),
        )


class SearchReport(Report, frozen=True, kw_only=True):
    """The result of `lumos search`; unless `all_counted`, at least `total` datasets match.

    If there are no results, `suggestion` is a query that finds some. `lineage_only` lists tables
    that no scan has found, and consumers such as dashboards, if their names or owners contain the
    words; it is empty if the search is filtered by anything except the owner. `consumers` has the
    names of these consumers by URN.
    """

    format_version: str = FORMAT_VERSION
    query: str
    total: int
    all_counted: bool
    results: tuple[SearchResult, ...]
    suggestion: str | None = None
    lineage_only: tuple[str, ...] = ()
    lineage_only_owners: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    consumers: dict[str, str] = msgspec.field(default_factory=dict)
