"""Reports of `lumos impact`; their field names are a stable JSON contract."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import UNSET, UnsetType, field

from lumos.impact.rules.results import DatasetImpact, Impact, Reason, rank
from lumos.impact.rules.type_uses import ValueType
from lumos.model.catalog import CatalogEntity, consumer_kind
from lumos.model.change import FieldAdded, Finding, Verdict
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.types import quoted_name
from lumos.rendering.text import plural
from lumos.schemas.findings import ChangeValue, change_rows

CheckState = Literal["ok", "fails", "cannot"]
VerdictName = Literal["BREAKING", "UNDETERMINED", "COMPATIBLE"]
WORST_FIRST: Final[tuple[VerdictName, ...]] = ("BREAKING", "UNDETERMINED", "COMPATIBLE")
RENAMED: Final = "renamed"
_MAX_REASON_LENGTH: Final = 400


class SparkCheckReport(Report, frozen=True, kw_only=True):
    """The Spark check of one statement; `fails` means that only the new schema causes an error.

    `error` is that error, or why the statement cannot be checked. `agrees` means that the result is
    consistent with the verdict; this is always true if the statement cannot be checked.
    """

    file: str | None
    line: int | None
    dialect: str | None
    state: CheckState
    error: str | None = None
    agrees: bool = True


class ChangeReport(Report, frozen=True, kw_only=True):
    """One change; for a renaming, `before` and `after` are the two names."""

    urn: str
    path: str
    kind: str
    before: ChangeValue
    after: ChangeValue


class ReasonReport(Report, frozen=True, kw_only=True):
    """Why a dataset breaks or not.

    `clause` is on `line` of `file`; `path` leads from the change to the column, as urn#column.
    `fields` are the changed columns or nested fields that the clause reads.
    """

    text: str
    usage: str | None
    clause: str | None
    file: str | None
    line: int | None
    verdict: VerdictName
    path: tuple[str, ...]
    fields: tuple[str, ...] = ()


class ColumnReport(Report, frozen=True, kw_only=True):
    """A column that changes as a result; `before` or `after` is None if it does not exist."""

    name: str
    before: str | None
    after: str | None
    path: tuple[str, ...]


class DownstreamReport(Report, frozen=True, kw_only=True):
    """A downstream dataset; unless `affected`, it uses nothing that changes.

    `kind`, `name` and `url` are set for a consumer that stores no data, such as a dashboard.
    `recommendations` are the recommendations of the report that concern this dataset.
    """

    urn: str
    verdict: VerdictName
    distance: int
    owner: str | None
    owners: tuple[str, ...]
    affected: bool
    gone: bool
    columns: tuple[str, ...]
    changed: tuple[ColumnReport, ...]
    reasons: tuple[ReasonReport, ...]
    recommendations: tuple[str, ...] = ()
    kind: str | None = None
    name: str | None = None
    url: str | None = None
    # Results of the Spark check, if requested.
    spark_check: tuple[SparkCheckReport, ...] | UnsetType = field(name="rehearsal", default=UNSET)

    @property
    def is_contradicted(self) -> bool:
        """Whether the Spark check contradicts the verdict."""
        checks = () if self.spark_check is UNSET else self.spark_check
        return not all(each.agrees for each in checks)

    @property
    def is_listed(self) -> bool:
        """Whether text and Markdown list the dataset instead of only counting it."""
        return self.affected or self.is_contradicted


class ImpactSummary(Report, frozen=True, kw_only=True):
    """Counts of downstream datasets: all, affected, and by verdict.

    `consumers` is the number of those that store no data, such as dashboards.
    """

    datasets: int
    affected: int
    breaking: int
    undetermined: int
    compatible: int
    consumers: int = 0

    @classmethod
    def of(cls, rows: Collection[DownstreamReport]) -> "ImpactSummary":
        counts = {word: sum(row.verdict == word for row in rows) for word in WORST_FIRST}
        return cls(
            datasets=len(rows),
            affected=sum(row.affected for row in rows),
            breaking=counts["BREAKING"],
            undetermined=counts["UNDETERMINED"],
            compatible=counts["COMPATIBLE"],
            consumers=sum(row.kind is not None for row in rows),
        )


class UnparsedReport(Report, frozen=True, kw_only=True):
    """An unparsable statement that mentions a changed dataset, and the datasets it may write."""

    reporter: str
    file: str | None
    line: int
    datasets: tuple[str, ...]


class ImpactReport(Report, frozen=True, kw_only=True):
    """The report of `lumos impact`, most severe impact first.

    `change` is the most severe of `changes`. `coverage` is the share of downstream datasets with a
    verdict, and 0 if the dataset has no lineage at all; an `unparsed` statement without a known
    target counts as a dataset without a verdict. `order` lists the breaking
    datasets in the order in which to update them.
    """

    format_version: str = FORMAT_VERSION
    headline: str
    change: ChangeReport
    changes: tuple[ChangeReport, ...]
    summary: ImpactSummary
    downstream: tuple[DownstreamReport, ...]
    recommendations: tuple[str, ...]
    order: tuple[str, ...]
    coverage: float
    remarks: tuple[str, ...]
    unparsed: tuple[UnparsedReport, ...] = ()


class ImpactsSummary(ImpactSummary, frozen=True, kw_only=True):
    """The summary of several changed datasets; each downstream dataset counts once."""

    schemas: int
    changes: int


class ImpactsReport(Report, frozen=True, kw_only=True):
    """The report of `lumos schema impact`: one report per changed dataset."""

    format_version: str = FORMAT_VERSION
    headline: str
    summary: ImpactsSummary
    datasets: tuple[ImpactReport, ...]
    recommendations: tuple[str, ...]
    coverage: float
    remarks: tuple[str, ...]


def change_reports(
    urn: str, findings: Sequence[Finding], renamed: Mapping[str, str]
) -> tuple[ChangeReport, ...]:
    """The changes, most severe first; a rename is one change."""
    rows = list(zip(findings, change_rows(urn, findings), strict=True))
    rows.sort(key=lambda pair: rank(pair[0].consumer))
    new_names = set(renamed.values())
    reports = []
    for finding, row in rows:
        kind, before, after = row.kind, row.before, row.after
        if row.path in renamed:
            kind, before, after = RENAMED, row.path, renamed[row.path]
        elif isinstance(finding.change, FieldAdded) and row.path in new_names:
            continue
        reports.append(ChangeReport(urn=urn, path=row.path, kind=kind, before=before, after=after))
    return tuple(reports)


def downstream_report(
    impact: DatasetImpact,
    *,
    is_deleted: bool,
    consumer: CatalogEntity | None = None,
    recommendations: tuple[str, ...] = (),
    spark_check: tuple[SparkCheckReport, ...] | UnsetType = UNSET,
) -> DownstreamReport:
    """The report on one downstream dataset."""
    return DownstreamReport(
        urn=impact.urn,
        verdict=verdict_name(impact.verdict),
        distance=impact.distance,
        owner=next(iter(impact.owners), None),
        owners=impact.owners,
        affected=impact.is_affected,
        gone=is_deleted,
        columns=tuple(dict.fromkeys(column.name for column in impact.columns)),
        changed=tuple(
            ColumnReport(
                name=column.name,
                before=_type_text(column.before),
                after=_type_text(column.after),
                path=_path_steps(column.path),
            )
            for column in impact.columns
        ),
        reasons=tuple(map(_reason_report, impact.reasons)),
        recommendations=recommendations,
        kind=None if consumer is None else consumer_kind(consumer),
        name=None if consumer is None else consumer.display_name,
        url=None if consumer is None else consumer.properties.get("url"),
        spark_check=spark_check,
    )


def verdict_name(verdict: Verdict) -> VerdictName:
    """The name of a verdict in reports; informational changes are compatible."""
    return WORST_FIRST[rank(verdict)]


def _reason_report(reason: Reason) -> ReasonReport:
    text = reason.text
    if len(text) > _MAX_REASON_LENGTH:
        # The text contains a very long expression.
        text = f"{text[: _MAX_REASON_LENGTH - 3]}..."
    return ReasonReport(
        text=text,
        usage=reason.usage,
        clause=reason.clause,
        file=reason.file,
        line=reason.line,
        verdict=verdict_name(reason.verdict),
        path=_path_steps(reason.path),
        fields=reason.fields,
    )


def _type_text(value: ValueType | None) -> str | None:
    if value is None:
        return None
    return f"{value.type.text} NOT NULL" if value.nullable is False else value.type.text


def _path_steps(path: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{urn}#{quoted_name(column)}" for urn, column in path)


def impact_report(
    impact: Impact,
    changes: tuple[ChangeReport, ...],
    rows: tuple[DownstreamReport, ...],
    *,
    has_lineage: bool,
    remarks: Sequence[str],
    unparsed: tuple[UnparsedReport, ...] = (),
) -> ImpactReport:
    """The report on the changes of one dataset."""
    summary = ImpactSummary.of(rows)
    determined = impact.coverage.determined
    share = _share(determined, impact.coverage.datasets + _count_without_target(unparsed))
    return ImpactReport(
        headline=headline(summary, describe_changes(changes, impact.urn)),
        change=changes[0],
        changes=changes,
        summary=summary,
        downstream=rows,
        recommendations=impact.recommendations,
        order=impact.order,
        coverage=share if has_lineage else 0.0,
        remarks=tuple(remarks),
        unparsed=unparsed,
    )


def _count_without_target(unparsed: Iterable[UnparsedReport]) -> int:
    return sum(not each.datasets for each in set(unparsed))


def _share(determined: int, datasets: int) -> float:
    return determined / datasets if datasets else 1.0


def impacts_report(datasets: Sequence[ImpactReport], remarks: Sequence[str]) -> ImpactsReport:
    """Combine the reports on several changed datasets."""
    worst: dict[str, DownstreamReport] = {}
    for row in (row for each in datasets for row in each.downstream):
        current = worst.get(row.urn)
        if current is None or _severity(row) < _severity(current):
            worst[row.urn] = row
    counts = ImpactSummary.of(worst.values())
    changes = sum(len(each.changes) for each in datasets)
    summary = ImpactsSummary(
        schemas=len(datasets),
        changes=changes,
        datasets=counts.datasets,
        affected=counts.affected,
        breaking=counts.breaking,
        undetermined=counts.undetermined,
        compatible=counts.compatible,
        consumers=counts.consumers,
    )
    determined = counts.datasets - counts.undetermined
    is_known = any(each.coverage for each in datasets) or not datasets
    total = counts.datasets + _count_without_target(
        row for each in datasets for row in each.unparsed
    )
    share = _share(determined, total) if total else float(is_known)
    return ImpactsReport(
        headline=f"This changes {plural(len(datasets), 'schema')}, affecting "
        f"{plural(counts.affected, 'downstream dataset')}",
        summary=summary,
        datasets=tuple(
            sorted(
                datasets,
                key=lambda each: (
                    -each.summary.breaking,
                    -each.summary.undetermined,
                    each.change.urn,
                ),
            )
        ),
        recommendations=tuple(
            dict.fromkeys(each for report in datasets for each in report.recommendations)
        ),
        coverage=share,
        remarks=tuple(
            dict.fromkeys([*remarks, *(each for report in datasets for each in report.remarks)])
        ),
    )


def headline(summary: ImpactSummary, subject: str) -> str:
    """The impact in one sentence."""
    if not summary.datasets:
        return f"{subject}: no downstream datasets are known"
    parts = [
        f"{count:,} {words[count != 1]}"
        for count, words in (
            (summary.breaking, ("breaks", "break")),
            (summary.undetermined, ("is undetermined", "are undetermined")),
            (summary.compatible, ("is compatible", "are compatible")),
        )
        if count
    ]
    counts = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    nouns = [
        plural(count, noun)
        for count, noun in (
            (summary.datasets - summary.consumers, "downstream dataset"),
            (summary.consumers, "consumer"),
        )
        if count
    ]
    return f"{subject}: of {' and '.join(nouns)}, {counts}"


def describe_changes(changes: Sequence[ChangeReport], urn: str) -> str:
    """A short description of changes of a dataset."""
    if len(changes) > 1:
        return f"{len(changes)} changes of {urn}"
    change = changes[0]
    match change.kind:
        case "removed":
            return f"Dropping {change.path} of {urn}" if change.path else f"Dropping {urn}"
        case "added":
            return f"Adding {change.path} {change.after} to {urn}"
        case "renamed":
            return f"Renaming {change.before} of {urn} to {change.after}"
        case "type_changed":
            return f"Changing {change.path} of {urn} from {change.before} to {change.after}"
        case "nullability":
            return f"{'Allowing' if change.after else 'Forbidding'} nulls in {change.path} of {urn}"
        case "reordered":
            subject = f"the fields in {change.path}" if change.path else "the columns"
            return f"Reordering {subject} of {urn}"
        case "key":
            return f"Making {change.path} of {urn} {'a key' if change.after else 'no key'}"
        case "partitioning":
            ending = "" if change.after else " no longer"
            return f"Partitioning {urn} by {change.path}{ending}"
        case kind:
            return f"Changing the {kind} of {f'{change.path} of ' if change.path else ''}{urn}"


def _severity(row: DownstreamReport) -> tuple[int, bool]:
    return WORST_FIRST.index(row.verdict), not row.affected
