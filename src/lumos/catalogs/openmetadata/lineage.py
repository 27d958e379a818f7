"""Edges: what OpenMetadata shows of a dataset's lineage, and what Lumos knows beyond it.

Lumos keeps its whole lineage beside the entity, since OpenMetadata has only edges between what is
there. It also keeps which edges and columns of edges it has written. So a missing one was taken
away by people if it was written, and waits for its other end if it was not.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.openmetadata.names import joined, meant, shortened, spelled, split
from lumos.catalogs.openmetadata.texts import shown_text
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping, LineageType
from lumos.model.types import quoted_name

Pair: TypeAlias = tuple[str, str]
"""The qualified names of a column and of the one that is made from it."""
_VIEW: Final = "ViewLineage"
_QUERY: Final = "QueryLineage"
_SAID: Final = ("source", "sqlQuery", "description")
_LONGEST: Final = 3072
_STEP: Final = re.compile(
    r"(?:\A|\.)(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>(?:[^`]|``)+)`)"
    r"(?:\[\]|\{\}|\{key\}|<\d+>)*",
    re.ASCII,
)


class Mark(NamedTuple):
    """What Lumos wrote of an edge: from which entity, and which columns of it.

    `unknown` are columns that were sent, but which the server does not know; `at` is when the edge
    was written, as the server tells it.
    """

    id: str
    pairs: tuple[Pair, ...] = ()
    unknown: tuple[Pair, ...] = ()
    at: int | None = None


Marks: TypeAlias = dict[str, Mark]
"""What Lumos wrote, by the URNs of where edges come from."""


class NativeEdge(NamedTuple):
    """An edge as the server has it; `columns` gives functions by pairs."""

    id: str
    type: str
    parts: tuple[str, ...]
    columns: dict[Pair, str | None]
    details: dict[str, Any]


class Edges(NamedTuple):
    """The edges that lead to a dataset, by the URNs of where they come from.

    `others` come from what is no dataset, by their URNs.
    """

    parts: tuple[str, ...]
    edges: dict[str, NativeEdge]
    is_there: Callable[[str], bool]
    """Whether some dataset, by its identifier, is there."""
    others: Mapping[str, NativeEdge] = MappingProxyType({})


def no_edges(parts: tuple[str, ...]) -> Edges:
    """Nothing known of the server's edges, and so nothing missing among them."""
    return Edges(parts, {}, lambda _: False)


def marked(text: str | None) -> Marks:
    """What Lumos wrote, from the property that it is kept in."""
    try:
        return msgspec.json.decode(text or "{}", type=Marks)
    except msgspec.MsgspecError:
        # Whoever wrote this, it was not Lumos.
        return {}


def merged(told: Lineage | None, now: Edges, marks: Marks) -> Lineage | None:
    """The lineage that Lumos told, with what people did to the edges since."""
    told_ones = told.upstream if told is not None else ()
    kept: list[UpstreamEdge] = []
    for edge in told_ones:
        native, mark = now.edges.get(edge.urn), marks.get(edge.urn)
        if native is not None:
            kept.append(_since(edge, native, now.parts, mark))
        elif mark is None or not now.is_there(mark.id):
            kept.append(edge)
    known = {edge.urn for edge in told_ones}
    theirs = (
        _read(urn, native, now.parts)
        for urn, native in sorted(now.edges.items())
        if urn not in known
    )
    upstream = (*kept, *theirs)
    if told is None:
        return Lineage(upstream=upstream) if upstream else None
    return msgspec.structs.replace(told, upstream=upstream)


def pairs_of(
    edges: Iterable[UpstreamEdge], parts: tuple[str, ...], own: tuple[str, ...]
) -> dict[Pair, str | None]:
    """The columns of edges between two entities, with the functions that make one of the other."""
    found: dict[Pair, str | None] = {}
    for edge in edges:
        for mapping in edge.columns:
            pair = _pair(mapping, parts, own)
            if max(map(len, pair)) <= _LONGEST:
                found.setdefault(pair, mapping.transformation)
    return found


def details_of(
    edges: Iterable[UpstreamEdge], columns: Mapping[Pair, str | None], there: Mapping[str, Any]
) -> dict[str, Any]:
    """What is written of an edge, over what is there."""
    type: LineageType = next(iter(edges)).type
    source = there.get("source")
    if source is None or (source == _VIEW) != (type == "VIEW"):
        source = _VIEW if type == "VIEW" else _QUERY
    kept = {key: there[key] for key in ("sqlQuery", "description", "pipeline") if there.get(key)}
    if "pipeline" in kept:
        kept["pipeline"] = {key: kept["pipeline"][key] for key in ("id", "type")}
    lines = [
        {"fromColumns": [pair[0]], "toColumn": pair[1]}
        | ({} if function is None else {"function": shown_text(function)})
        for pair, function in columns.items()
    ]
    return {"source": source, "columnsLineage": lines, **kept}


def portable_details(
    details: Mapping[str, Any], start: tuple[str, ...], end: tuple[str, ...]
) -> dict[str, Any]:
    """What is said of an edge; columns by their names inside of what they are in."""
    told: dict[str, Any] = {key: details[key] for key in _SAID if details.get(key)}
    pipeline = details.get("pipeline") or {}
    if fqn := pipeline.get("fullyQualifiedName"):
        told["pipeline"] = {"type": "pipeline", "fullyQualifiedName": fqn}
    lines = [
        {
            "fromColumns": [joined(*split(each)[len(start) :]) for each in line["fromColumns"]],
            "toColumn": joined(*split(line["toColumn"])[len(end) :]),
            **({"function": line["function"]} if line.get("function") else {}),
        }
        for line in details.get("columnsLineage") or ()
        if line.get("fromColumns") and line.get("toColumn")
    ]
    return told | ({"columns": lines} if lines else {})


def is_said(said: Any) -> bool:
    """Whether something is what `said_beside` gives."""
    return isinstance(said, dict) and all(
        isinstance(name, str)
        and isinstance(each, dict)
        and each.keys() <= {*_SAID, "pipeline", "columns"}
        for name, each in said.items()
    )


def said_beside(
    before: Mapping[str, Any], now: Edges, marks: Marks, upstream: Collection[str]
) -> dict[str, dict[str, Any]]:
    """What edges say beyond what Lumos would write of them, with what Lumos said of them before.

    That is `before`. It still holds of edges that were not drawn yet, and of pipelines that the
    server does not have.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, native in {**now.edges, **now.others}.items():
        told = portable_details(native.details, native.parts, now.parts)
        mine = before.get(name)
        if mine is not None and "pipeline" in mine:
            told.setdefault("pipeline", mine["pipeline"])
        if name in now.others or not _is_as_written(told):
            found[name] = told
    for name, mine in before.items():
        is_waiting = name not in marks and name not in now.edges and name not in now.others
        if is_waiting and (name in upstream or not _is_dataset(name)):
            found[name] = mine
    return found


def is_fit(mine: Mapping[str, Any], native: NativeEdge, own: tuple[str, ...]) -> bool:
    """Whether an edge says what Lumos says of it, pipelines aside."""
    told = portable_details(native.details, native.parts, own)
    if any(told.get(key) != mine[key] for key in _SAID if key in mine):
        return False
    lines, there = (_pairs_in(side.get("columns")) for side in (mine, told))
    return lines != there or not mine.get("columns") or mine["columns"] == told["columns"]


def with_said(details: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of an edge, in the words and groups of columns that were said."""
    words = {key: value for key, value in said.items() if key != "columnsLineage"}
    grouped = columns_in(said)
    if not grouped or grouped.keys() - columns_in(details).keys():
        return {**details, **words}
    rest = [
        line
        for line in details["columnsLineage"]
        if (line["fromColumns"][0], line["toColumn"]) not in grouped
    ]
    return {**details, **words, "columnsLineage": [*said["columnsLineage"], *rest]}


def _is_as_written(told: Mapping[str, Any]) -> bool:
    """Whether an edge says no more than Lumos would write by itself."""
    lines = told.get("columns") or ()
    is_by_lumos = told.get("source") in (_VIEW, _QUERY) and told.keys() <= {"source", "columns"}
    return is_by_lumos and all(len(line["fromColumns"]) == 1 for line in lines)


def _pairs_in(lines: Any) -> set[Pair]:
    return {
        (start, line["toColumn"]) for line in lines or () for start in line.get("fromColumns") or ()
    }


def _is_dataset(name: str) -> bool:
    return name.startswith("lumos://")


def columns_in(details: Mapping[str, Any]) -> dict[Pair, str | None]:
    """The columns of an edge as the server tells it."""
    return {
        (start, line["toColumn"]): line.get("function")
        for line in details.get("columnsLineage") or ()
        for start in line.get("fromColumns") or ()
        if line.get("toColumn")
    }


def written_at(details: Mapping[str, Any]) -> int | None:
    """When an edge was written last."""
    at = details.get("updatedAt")
    return at if isinstance(at, int) else None


def _since(
    edge: UpstreamEdge, native: NativeEdge, own: tuple[str, ...], mark: Mark | None
) -> UpstreamEdge:
    """An edge without the columns that people took away, and with those that they added."""
    before = set(mark.pairs) if mark is not None and mark.id == native.id else set()
    gone = before - native.columns.keys()
    if mark is not None and mark.at is not None and mark.at == written_at(native.details):
        # Nobody wrote the edge since: the columns themselves were gone for a while.
        gone = set()
    told = {_pair(mapping, native.parts, own) for mapping in edge.columns}
    kept = [each for each in edge.columns if _pair(each, native.parts, own) not in gone]
    added = [
        _mapping(pair, function, native.parts, own)
        for pair, function in native.columns.items()
        if pair not in before and pair not in told
    ]
    if not gone and not added:
        return edge
    return msgspec.structs.replace(edge, columns=(*kept, *added))


def _read(urn: str, native: NativeEdge, own: tuple[str, ...]) -> UpstreamEdge:
    is_view = native.details.get("source") == _VIEW
    columns = (
        _mapping(pair, function, native.parts, own) for pair, function in native.columns.items()
    )
    return UpstreamEdge(urn=urn, type="VIEW" if is_view else "TRANSFORMED", columns=tuple(columns))


def _mapping(
    pair: Pair, function: str | None, parts: tuple[str, ...], own: tuple[str, ...]
) -> ColumnMapping:
    return ColumnMapping(
        upstream=_path(pair[0], parts), downstream=_path(pair[1], own), transformation=function
    )


def _path(fqn: str, parts: tuple[str, ...]) -> str:
    """The path of a column in Lumos; marks for what is in arrays and maps are not known."""
    return ".".join(quoted_name(meant(name)) for name in split(fqn)[len(parts) :])


def _pair(mapping: ColumnMapping, parts: tuple[str, ...], own: tuple[str, ...]) -> Pair:
    return _fqn(mapping.upstream, parts), _fqn(mapping.downstream, own)


def _fqn(path: str, parts: tuple[str, ...]) -> str:
    return joined(*parts, *(shortened(spelled(name)) for name in _names(path)))


def _names(path: str) -> list[str]:
    """The names in a path: of a column, and of members inside it."""
    found, offset = [], 0
    while match := _STEP.match(path, offset):
        found.append(match["plain"] or match["quoted"].replace("``", "`"))
        offset = match.end()
        if offset == len(path):
            return found
    # No path of Lumos, so it is the name of a column.
    return [path]
