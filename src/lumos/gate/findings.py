"""Creates findings of the gate from impact reports, with the lines of SQL on their paths."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from lumos.gate.reports import (
    Bump,
    Category,
    GateFinding,
    GateLocation,
    GateStep,
    Level,
    fingerprint_of,
)
from lumos.impact.reports import ChangeReport, DownstreamReport, ImpactReport, ReasonReport
from lumos.model.change import Verdict
from lumos.model.paths import overlap
from lumos.model.types import quoted_name
from lumos.rendering.text import few
from lumos.schemas.findings import ChangeRow
from lumos.schemas.reports import DatasetDiff
from lumos.store import Store

_REPORTED_VERDICTS = ("BREAKING", "UNDETERMINED")
_INCOMPATIBLE_VERDICTS = (Verdict.BREAKING, Verdict.UNDETERMINED)
_BUMPS: dict[Verdict, Bump] = {
    Verdict.BREAKING: "major",
    Verdict.UNDETERMINED: "major",
    Verdict.COMPATIBLE: "minor",
    Verdict.INFORMATIONAL: "patch",
}
_STAR = "*"
_PROJECTION = "PROJECTION"
_REMOVALS = ("removed", "renamed")
_MAX_LISTED = 5

# Two consecutive steps of a path, each as urn#column.
Hop: TypeAlias = tuple[str, str]


def findings_of(
    report: ImpactReport,
    diff: DatasetDiff,
    *,
    declared: GateLocation | None,
    replace_urns: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
    is_model: bool = False,
    new_files: Collection[str] = (),
    files: Collection[str] = (),
    declared_urns: Collection[str] = (),
) -> Iterator[GateFinding]:
    """The findings of the changes of one dataset: one per change and affected dataset.

    `replace_urns` replaces the URNs in a text by display names. `is_model` means that SQL of the
    repository creates the dataset, so all of its lineage is known. A model in one of `new_files`
    had no columns before that it could lose. A model in one of `files` that only passes on a
    removed column with `SELECT *` still works, unless its schema is declared (`declared_urns`);
    readers of the model's column get findings of their own.
    """
    by_path: dict[str, ChangeReport] = {}
    # The most severe change of a column comes first.
    for change in report.changes:
        by_path.setdefault(change.path, change)
    rows = {(row.path, row.kind): row for row in diff.changes}
    affecting_paths: set[str] = set()
    losing_models: dict[str, list[str]] = {}
    for row in report.downstream:
        reasons: dict[str, list[ReasonReport]] = {}
        for reason in row.reasons:
            is_star = reason.usage == _PROJECTION and _is_star(reason.clause)
            if reason.verdict not in _REPORTED_VERDICTS or (is_star and reason.file in new_files):
                continue
            passes_on = is_star and reason.file in files and row.urn not in declared_urns
            for path in _paths_behind(reason, report, rows):
                if passes_on and by_path[path].kind in _REMOVALS:
                    losing_models.setdefault(path, []).append(replace_urns(row.urn))
                else:
                    reasons.setdefault(path, []).append(reason)
        for path, reasons_of_path in reasons.items():
            affecting_paths.add(path)
            change = by_path[path]
            judged_change = rows.get((path, change.kind))
            yield _downstream_finding(
                change, judged_change, row, reasons_of_path, declared, replace_urns, locations
            )
    for change in report.changes:
        if change.path not in affecting_paths:
            judged_change = rows.get((change.path, change.kind))
            yield _change_finding(
                change, judged_change, report, declared, replace_urns,
                losing_models.get(change.path, ()), is_model=is_model,
            )  # fmt: skip


def unparsed_finding(model: str, urn: str, file: str, problem: str) -> GateFinding:
    """The finding of a model that could be parsed before the change, and cannot be any more."""
    reason = f"its columns are unknown, since its SQL cannot be parsed any more ({problem})"
    return GateFinding(
        # Without the problem, which has a line number.
        fingerprint=fingerprint_of(("unparsed", urn)),
        level="warning",
        rule="unparsed",
        dataset=model,
        path="",
        before=None,
        after=None,
        affected=None,
        owners=(),
        message=f"{model}: {reason}",
        reason=reason,
        clause=None,
        declared=GateLocation(file=file),
        used=None,
        urn=urn,
        category="undetermined",
        bump="major",
    )


def _is_star(clause: str | None) -> bool:
    """Whether a clause selects all columns, as in `*` or `o.*`."""
    return clause is not None and (clause == _STAR or clause.endswith(f".{_STAR}"))


def _paths_behind(
    reason: ReasonReport, report: ImpactReport, rows: Mapping[tuple[str, str], ChangeRow]
) -> list[str]:
    """The changed fields that a reason is about: fields that it reads, or that overlap with them.

    If it reads an entire struct, any of its fields with an incompatible change may be the cause.
    """
    overlapping = [
        each for each in report.changes if any(overlap(field, each.path) for field in reason.fields)
    ]
    affecting = [
        each.path
        for each in overlapping
        if (row := rows.get((each.path, each.kind))) is not None
        and row.consumer in _INCOMPATIBLE_VERDICTS
    ]
    paths = affecting or [each.path for each in overlapping] or [report.change.path]
    return list(dict.fromkeys(paths))


def _downstream_finding(
    change: ChangeReport,
    judged_change: ChangeRow | None,
    downstream: DownstreamReport,
    reasons: Sequence[ReasonReport],
    declared: GateLocation | None,
    replace_urns: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
) -> GateFinding:
    is_breaking = any(each.verdict == "BREAKING" for each in reasons)
    decisive = [each for each in reasons if (each.verdict == "BREAKING") == is_breaking]
    # Reasons of one usage have no order; choose one so that comments do not change between runs.
    same_usage = [each for each in decisive if each.usage == decisive[0].usage]
    reason = min(same_usage, key=lambda each: (each.file or "", each.line or 0, each.text))
    verb = "breaks" if is_breaking else "may break"
    owner = f" ({', '.join(downstream.owners)})" if downstream.owners else ""
    used = None if reason.file is None else GateLocation(file=reason.file, line=reason.line)
    position = f" ({reason.file}:{reason.line})" if reason.file else ""
    return GateFinding(
        fingerprint=_fingerprint(
            change, downstream.urn, {each.usage or each.text for each in decisive}
        ),
        level="error" if is_breaking else "warning",
        rule=change.kind,
        dataset=replace_urns(change.urn),
        path=change.path,
        before=_text(change.before),
        after=_text(change.after),
        affected=replace_urns(downstream.urn),
        owners=downstream.owners,
        message=f"{_describe(change, replace_urns)} and {verb} "
        f"{replace_urns(downstream.urn)}{owner}: {replace_urns(reason.text)}{position}",
        reason=replace_urns(reason.text),
        clause=reason.clause,
        declared=declared,
        used=used,
        trail=tuple(_trail(reason.path, declared, replace_urns, locations)),
        recommendations=tuple(map(replace_urns, downstream.recommendations)),
        urn=change.urn,
        affected_urn=downstream.urn,
        category="breaking" if is_breaking else "undetermined",
        flags=judged_change.flags if judged_change else (),
        bump="major",
    )


def _trail(
    path: Sequence[str],
    declared: GateLocation | None,
    replace_urns: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
) -> Iterator[GateStep]:
    step_locations = [declared, *(locations.get(hop) for hop in pairwise(path))]
    for step, location in zip(path, step_locations, strict=False):
        urn, _, column = step.partition("#")
        yield GateStep(dataset=replace_urns(urn), column=column, location=location)


def _change_finding(
    change: ChangeReport,
    judged_change: ChangeRow | None,
    report: ImpactReport,
    declared: GateLocation | None,
    replace_urns: Callable[[str], str],
    losing_models: Sequence[str],
    *,
    is_model: bool,
) -> GateFinding:
    """A change that affects no known reader; it is undetermined if readers may be unknown.

    `losing_models` are models that lose the same column, since they select all columns.
    """
    affects_consumers = (
        judged_change is not None and judged_change.consumer in _INCOMPATIBLE_VERDICTS
    )
    has_complete_lineage = is_model and not report.downstream and not report.unparsed
    is_complete = report.coverage >= 1 or has_complete_lineage
    category: Category = "compatible"
    level: Level = "note"
    if affects_consumers and not is_complete:
        category, level = "undetermined", "warning"
        reason = (
            "no known reader is affected, but the lineage is incomplete"
            if report.coverage
            else "the impact on its readers could not be determined"
            if report.downstream
            else "no lineage is known, so readers are unknown"
        )
    elif affects_consumers:
        category = "unread"
        reason = "no known reader is affected, and the lineage is complete"
        if losing_models:
            listed, more = few(list(dict.fromkeys(losing_models)), _MAX_LISTED)
            others = f" and {more:,} more" if more else ""
            models = f"{', '.join(listed)}{others}"
            reason += f"; models that lose it too, since they use SELECT *: {models}"
    elif judged_change is not None and judged_change.storage is Verdict.BREAKING:
        category = "storage"
        reason = "no reader is affected, but earlier data cannot be read with the new schema"
    else:
        reason = "no reader is affected"
    return GateFinding(
        fingerprint=_fingerprint(change, "", ()),
        level=level,
        rule=change.kind,
        dataset=replace_urns(change.urn),
        path=change.path,
        before=_text(change.before),
        after=_text(change.after),
        affected=None,
        owners=(),
        message=f"{_describe(change, replace_urns)}: {reason}",
        reason=reason,
        clause=None,
        declared=declared,
        used=None,
        urn=change.urn,
        category=category,
        flags=judged_change.flags if judged_change else (),
        bump="patch" if judged_change is None else _BUMPS[judged_change.consumer],
    )


def _describe(change: ChangeReport, replace_urns: Callable[[str], str]) -> str:
    dataset = replace_urns(change.urn)
    if change.kind == "reordered":
        return f"The columns of {dataset} were reordered"
    if not change.path:
        return f"{dataset} was {change.kind}"
    column = f"{dataset}.{change.path}"
    match change.kind:
        case "nullability":
            return f"{column} became {'nullable' if change.after else 'required'}"
        case "key":
            return f"{column} became a key" if change.after else f"{column} is no longer a key"
        case "partitioning" if change.after:
            return f"{dataset} is now partitioned by {change.path}"
        case "partitioning":
            return f"{dataset} is no longer partitioned by {change.path}"
        case "description" | "default" | "tags":
            return f"The {change.kind} of {column} changed"
        case "added" | "removed":
            return f"{column} was {change.kind}"
        case "renamed":
            return f"{column} was renamed to {_text(change.after)}"
        case _ if change.before is not None and change.after is not None:
            return f"{column} changed from {_text(change.before)} to {_text(change.after)}"
        case _:
            return f"{column} changed ({change.kind})"


def _text(value: object) -> str | None:
    if value is None:
        return None
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _fingerprint(change: ChangeReport, affected: str, uses: Iterable[str]) -> str:
    """A hash that identifies a finding, independent of lines, formatting and order of files."""
    parts = (
        change.urn, change.path, change.kind, change.before, change.after, affected, *sorted(uses)
    )  # fmt: skip
    return fingerprint_of(_text(part) or "" for part in parts)


def hop_locations(store: Store, reports: Iterable[ImpactReport]) -> Mapping[Hop, GateLocation]:
    """The lines of SQL that derive each column of a path from the one before it."""
    hops = {
        hop
        for report in reports
        for row in report.downstream
        for reason in row.reasons
        for hop in pairwise(reason.path)
    }
    links = {(before.partition("#")[0], after.partition("#")[0]) for before, after in hops}
    locations = {}
    for edge in store.lineage.between(links):
        for mapping in edge.columns:
            if mapping.file is not None:
                before = f"{edge.upstream}#{quoted_name(mapping.upstream)}"
                after = f"{edge.downstream}#{quoted_name(mapping.downstream)}"
                location = GateLocation(file=mapping.file, line=mapping.line)
                locations[before, after] = location
    return {hop: locations[hop] for hop in hops & locations.keys()}
