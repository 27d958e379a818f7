"""Findings of the gate, from reports on impact."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from lumos.gate.reports import Bump, Category, GateFinding, GateLocation, GateStep, Level
from lumos.gate.trail import Hop
from lumos.impact.reports import ChangeReport, DownstreamReport, ImpactReport, ReasonReport
from lumos.model.change import Verdict
from lumos.model.paths import overlap
from lumos.schemas.findings import ChangeRow
from lumos.schemas.reports import DatasetDiff

_JUDGED = ("BREAKING", "UNDETERMINED")
_MATTERS = (Verdict.BREAKING, Verdict.UNDETERMINED)
_BUMPS: dict[Verdict, Bump] = {
    Verdict.BREAKING: "major",
    Verdict.UNDETERMINED: "major",
    Verdict.COMPATIBLE: "minor",
    Verdict.INFORMATIONAL: "patch",
}
_DIGITS = 16


def findings_of(
    report: ImpactReport,
    diff: DatasetDiff,
    *,
    declared: GateLocation | None,
    names: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
    is_model: bool = False,
) -> Iterator[GateFinding]:
    """The findings of the changes of one dataset: one per change and affected dataset.

    The lineage of a model at the merge base is known, even if nothing is left of it at the head.
    """
    by_path: dict[str, ChangeReport] = {}
    # The most severe change of a column comes first.
    for change in report.changes:
        by_path.setdefault(change.path, change)
    rows = {(row.path, row.kind): row for row in diff.changes}
    affecting: set[str] = set()
    for row in report.downstream:
        reasons: dict[str, list[ReasonReport]] = {}
        for reason in row.reasons:
            if reason.verdict in _JUDGED:
                for path in _paths_behind(reason, report, rows):
                    reasons.setdefault(path, []).append(reason)
        for path, some in reasons.items():
            affecting.add(path)
            change = by_path[path]
            judged = rows.get((path, change.kind))
            yield _downstream_finding(change, judged, row, some, declared, names, locations)
    for change in report.changes:
        if change.path not in affecting:
            judged = rows.get((change.path, change.kind))
            yield _change_finding(change, judged, report, declared, names, is_model=is_model)


def _paths_behind(
    reason: ReasonReport, report: ImpactReport, rows: Mapping[tuple[str, str], ChangeRow]
) -> list[str]:
    """The changed fields that a reason is about: what it reads, fields inside or structs around it.

    If it reads a whole struct, any field of it that changes for consumers may be the cause.
    """
    about = [
        each for each in report.changes if any(overlap(field, each.path) for field in reason.fields)
    ]
    matter = [
        each.path
        for each in about
        if (row := rows.get((each.path, each.kind))) is not None and row.consumer in _MATTERS
    ]
    paths = matter or [each.path for each in about] or [report.change.path]
    return list(dict.fromkeys(paths))


def _downstream_finding(
    change: ChangeReport,
    judged: ChangeRow | None,
    row: DownstreamReport,
    reasons: Sequence[ReasonReport],
    declared: GateLocation | None,
    names: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
) -> GateFinding:
    worst = min(each.verdict != "BREAKING" for each in reasons)
    decisive = [each for each in reasons if (each.verdict != "BREAKING") == worst]
    is_breaking = not worst
    # Reasons of one usage have no order. Comments change only if the change does.
    alike = [each for each in decisive if each.usage == decisive[0].usage]
    reason = min(alike, key=lambda each: (each.file or "", each.line or 0, each.text))
    verb = "breaks" if is_breaking else "may break"
    owner = f" ({', '.join(row.owners)})" if row.owners else ""
    used = None if reason.file is None else GateLocation(file=reason.file, line=reason.line)
    where = f" ({reason.file}:{reason.line})" if reason.file else ""
    return GateFinding(
        fingerprint=_fingerprint(change, row.urn, {each.usage or each.text for each in decisive}),
        level="error" if is_breaking else "warning",
        rule=change.kind,
        dataset=names(change.urn),
        path=change.path,
        before=_text(change.before),
        after=_text(change.after),
        affected=names(row.urn),
        owners=row.owners,
        message=f"{_describe(change, names)} and {verb} {names(row.urn)}{owner}: "
        f"{names(reason.text)}{where}",
        reason=names(reason.text),
        clause=reason.clause,
        declared=declared,
        used=used,
        trail=tuple(_trail(reason.path, declared, names, locations)),
        recommendations=tuple(map(names, row.recommendations)),
        urn=change.urn,
        affected_urn=row.urn,
        category="breaking" if is_breaking else "undetermined",
        flags=judged.flags if judged else (),
        bump="major",
    )


def _trail(
    path: Sequence[str],
    declared: GateLocation | None,
    names: Callable[[str], str],
    locations: Mapping[Hop, GateLocation],
) -> Iterator[GateStep]:
    places = [declared, *(locations.get(hop) for hop in pairwise(path))]
    for step, location in zip(path, places, strict=False):
        urn, _, column = step.partition("#")
        yield GateStep(dataset=names(urn), column=column, location=location)


def _change_finding(
    change: ChangeReport,
    judged: ChangeRow | None,
    report: ImpactReport,
    declared: GateLocation | None,
    names: Callable[[str], str],
    *,
    is_model: bool,
) -> GateFinding:
    """A change that affects no known reader; what is unknown is not called safe."""
    matters = judged is not None and judged.consumer in _MATTERS
    has_all_readers = is_model and not report.downstream and not report.unparsed
    is_complete = report.coverage >= 1 or has_all_readers
    category: Category = "compatible"
    level: Level = "note"
    if matters and not is_complete:
        category, level = "undetermined", "warning"
        reason = (
            "no known reader is affected, but the lineage is incomplete"
            if report.coverage
            else "the impact on its readers could not be determined"
            if report.downstream
            else "no lineage is known, so readers are unknown"
        )
    elif matters:
        category = "unread"
        reason = "no known reader is affected, and the lineage is complete"
    elif judged is not None and judged.storage is Verdict.BREAKING:
        category = "storage"
        reason = "no reader is affected, but earlier data cannot be read with the new schema"
    else:
        reason = "no reader is affected"
    return GateFinding(
        fingerprint=_fingerprint(change, "", ()),
        level=level,
        rule=change.kind,
        dataset=names(change.urn),
        path=change.path,
        before=_text(change.before),
        after=_text(change.after),
        affected=None,
        owners=(),
        message=f"{_describe(change, names)}: {reason}",
        reason=reason,
        clause=None,
        declared=declared,
        used=None,
        urn=change.urn,
        category=category,
        flags=judged.flags if judged else (),
        bump="patch" if judged is None else _BUMPS[judged.consumer],
    )


def _describe(change: ChangeReport, names: Callable[[str], str]) -> str:
    dataset = names(change.urn)
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
    """Identifies a finding independent of lines, formatting and the order of files."""
    parts = (
        change.urn, change.path, change.kind, change.before, change.after, affected, *sorted(uses)
    )  # fmt: skip
    text = "\0".join(_text(part) or "" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
