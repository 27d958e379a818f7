"""Merges the edges of a dataset in OpenMetadata with the lineage of Lumos.

OpenMetadata only has edges between existing entities, so Lumos stores its complete lineage in one
property, and the edges and columns that it has written in another one. If an edge is missing on the
server, users removed it if Lumos had written it; otherwise, it waits for its upstream dataset.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.openmetadata.names import (
    decode_name,
    encode_name,
    is_dataset_urn,
    join_fqn,
    shorten_name,
    split_fqn,
    without_nul,
)
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping, LineageType
from lumos.model.types import quoted_name

Pair: TypeAlias = tuple[str, str]
"""The qualified names of an upstream and a downstream column."""
_VIEW: Final = "ViewLineage"
_QUERY: Final = "QueryLineage"
_DETAIL_KEYS: Final = ("source", "sqlQuery", "description")
_MAX_FQN_LENGTH: Final = 3072
_STEP: Final = re.compile(
    r"(?:\A|\.)(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>(?:[^`]|``)+)`)"
    r"(?:\[\]|\{\}|\{key\}|<\d+>)*",
    re.ASCII,
)


class WrittenEdge(NamedTuple):
    """An edge that Lumos wrote: its upstream entity and its columns.

    `unknown` columns were sent, but the server dropped them; `at` is the time of the write by the
    clock of the server.
    """

    id: str
    pairs: tuple[Pair, ...] = ()
    unknown: tuple[Pair, ...] = ()
    at: int | None = None


WrittenEdges: TypeAlias = dict[str, WrittenEdge]
"""The edges that Lumos wrote, by upstream URN."""


class NativeEdge(NamedTuple):
    """An edge of the server; `columns` has the functions by pair of columns."""

    id: str
    type: str
    parts: tuple[str, ...]
    columns: dict[Pair, str | None]
    details: dict[str, Any]

    @property
    def reference(self) -> dict[str, str]:
        return {"id": self.id, "type": self.type}


class Edges(NamedTuple):
    """The upstream edges of a dataset, by upstream URN.

    `others` are edges from entities that are not datasets.
    """

    parts: tuple[str, ...]
    edges: dict[str, NativeEdge]
    exists: Callable[[str], bool]
    """Whether the dataset with an identifier exists."""
    others: Mapping[str, NativeEdge] = MappingProxyType({})


def no_edges(parts: tuple[str, ...]) -> Edges:
    """Edges of a dataset that were not read: a merge removes none of them."""
    return Edges(parts, {}, lambda _: False)


def read_written_edges(text: str | None) -> WrittenEdges:
    """Decode the property with the edges that Lumos wrote."""
    try:
        return msgspec.json.decode(text or "{}", type=WrittenEdges)
    except msgspec.MsgspecError:
        # Lumos did not write this property.
        return {}


def dropped_pairs(written: WrittenEdge | None, native: NativeEdge) -> frozenset[Pair]:
    """The columns of an edge that were sent before and that the server dropped."""
    if written is None or written.id != native.id:
        return frozenset()
    return frozenset(written.unknown)


def merge_lineage(ours: Lineage | None, current: Edges, written: WrittenEdges) -> Lineage | None:
    """Our lineage with the edits that users made to its edges in OpenMetadata."""
    our_edges = ours.upstream if ours is not None else ()
    upstream_edges: list[UpstreamEdge] = []
    for edge in our_edges:
        native, written_edge = current.edges.get(edge.urn), written.get(edge.urn)
        if native is not None:
            upstream_edges.append(_with_edits(edge, native, current.parts, written_edge))
        elif written_edge is None or not current.exists(written_edge.id):
            upstream_edges.append(edge)
    known = {edge.urn for edge in our_edges}
    theirs = (
        UpstreamEdge(
            urn=urn,
            type="VIEW" if native.details.get("source") == _VIEW else "TRANSFORMED",
            columns=tuple(
                _mapping(pair, function, native.parts, current.parts)
                for pair, function in native.columns.items()
            ),
        )
        for urn, native in sorted(current.edges.items())
        if urn not in known
    )
    upstream = (*upstream_edges, *theirs)
    if ours is None:
        return Lineage(upstream=upstream) if upstream else None
    return msgspec.structs.replace(ours, upstream=upstream)


def pairs_of(
    edges: Iterable[UpstreamEdge], parts: tuple[str, ...], downstream_parts: tuple[str, ...]
) -> dict[Pair, str | None]:
    """The pairs of columns in edges between two entities, with their functions."""
    pairs: dict[Pair, str | None] = {}
    for edge in edges:
        for mapping in edge.columns:
            pair = _pair(mapping, parts, downstream_parts)
            if max(map(len, pair)) <= _MAX_FQN_LENGTH:
                pairs.setdefault(pair, mapping.transformation)
    return pairs


def details_of(
    edges: Iterable[UpstreamEdge], columns: Mapping[Pair, str | None], current: Mapping[str, Any]
) -> dict[str, Any]:
    """The details to write for an edge, given its current ones."""
    type: LineageType = next(iter(edges)).type
    source = current.get("source")
    if source is None or (source == _VIEW) != (type == "VIEW"):
        source = _VIEW if type == "VIEW" else _QUERY
    preserved = {
        key: current[key] for key in ("sqlQuery", "description", "pipeline") if current.get(key)
    }
    if "pipeline" in preserved:
        preserved["pipeline"] = {key: preserved["pipeline"][key] for key in ("id", "type")}
    items = [
        {"fromColumns": [pair[0]], "toColumn": pair[1]}
        | ({} if function is None else {"function": without_nul(function)})
        for pair, function in columns.items()
    ]
    return {"source": source, "columnsLineage": items, **preserved}


def portable_details(
    details: Mapping[str, Any], start: tuple[str, ...], end: tuple[str, ...]
) -> dict[str, Any]:
    """The details of an edge for another server, with columns relative to their datasets."""
    portable: dict[str, Any] = {key: details[key] for key in _DETAIL_KEYS if details.get(key)}
    pipeline = details.get("pipeline") or {}
    if fqn := pipeline.get("fullyQualifiedName"):
        portable["pipeline"] = {"type": "pipeline", "fullyQualifiedName": fqn}
    items = [
        {
            "fromColumns": [
                join_fqn(*split_fqn(each)[len(start) :]) for each in item["fromColumns"]
            ],
            "toColumn": join_fqn(*split_fqn(item["toColumn"])[len(end) :]),
            **({"function": item["function"]} if item.get("function") else {}),
        }
        for item in details.get("columnsLineage") or ()
        if item.get("fromColumns") and item.get("toColumn")
    ]
    return portable | ({"columns": items} if items else {})


def is_details_by_urn(value: Any) -> bool:
    """Whether a value has the format that `unmodelled_details` returns."""
    return isinstance(value, dict) and all(
        isinstance(name, str)
        and isinstance(each, dict)
        and each.keys() <= {*_DETAIL_KEYS, "pipeline", "columns"}
        for name, each in value.items()
    )


def unmodelled_details(
    before: Mapping[str, Any], current: Edges, written: WrittenEdges, upstream: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The details of edges that Lumos would not write itself, by upstream URN.

    `before` is the result of the previous call. It still applies to edges that could not be written
    yet, and to pipelines that the server does not have.
    """
    details_by_urn: dict[str, dict[str, Any]] = {}
    for name, native in {**current.edges, **current.others}.items():
        details = portable_details(native.details, native.parts, current.parts)
        known = before.get(name)
        if known is not None and "pipeline" in known:
            details.setdefault("pipeline", known["pipeline"])
        if name in current.others or not _is_reproducible(details):
            details_by_urn[name] = details
    for name, known in before.items():
        is_waiting = (
            name not in written and name not in current.edges and name not in current.others
        )
        if is_waiting and (name in upstream or not is_dataset_urn(name)):
            details_by_urn[name] = known
    return details_by_urn


def has_details(
    wanted: Mapping[str, Any], native: NativeEdge, downstream_parts: tuple[str, ...]
) -> bool:
    """Whether an edge has the wanted details, except for its pipeline."""
    details = portable_details(native.details, native.parts, downstream_parts)
    if any(details.get(key) != wanted[key] for key in _DETAIL_KEYS if key in wanted):
        return False
    wanted_pairs, current_pairs = (
        columns_in({"columnsLineage": side.get("columns")}).keys() for side in (wanted, details)
    )
    return (
        wanted_pairs != current_pairs
        or not wanted.get("columns")
        or wanted["columns"] == details["columns"]
    )


def with_details(details: dict[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Add wanted details to those of an edge, including its groups of columns."""
    others = {key: value for key, value in wanted.items() if key != "columnsLineage"}
    grouped = columns_in(wanted)
    if not grouped or grouped.keys() - columns_in(details).keys():
        return {**details, **others}
    rest = [
        item
        for item in details["columnsLineage"]
        if (item["fromColumns"][0], item["toColumn"]) not in grouped
    ]
    return {**details, **others, "columnsLineage": [*wanted["columnsLineage"], *rest]}


def _is_reproducible(details: Mapping[str, Any]) -> bool:
    """Whether Lumos would write an edge with these details itself."""
    items = details.get("columns") or ()
    is_by_lumos = details.get("source") in (_VIEW, _QUERY) and details.keys() <= {
        "source",
        "columns",
    }
    return is_by_lumos and all(len(item["fromColumns"]) == 1 for item in items)


def columns_in(details: Mapping[str, Any]) -> dict[Pair, str | None]:
    """The pairs of columns in the details of an edge, with their functions."""
    return {
        (start, item["toColumn"]): item.get("function")
        for item in details.get("columnsLineage") or ()
        for start in item.get("fromColumns") or ()
        if item.get("toColumn")
    }


def written_at(details: Mapping[str, Any]) -> int | None:
    """The time of the last write of an edge, or None."""
    at = details.get("updatedAt")
    return at if isinstance(at, int) else None


def _with_edits(
    edge: UpstreamEdge,
    native: NativeEdge,
    downstream_parts: tuple[str, ...],
    written: WrittenEdge | None,
) -> UpstreamEdge:
    """Our edge without the columns that users removed, and with those that they added."""
    before = set(written.pairs) if written is not None and written.id == native.id else set()
    removed = before - native.columns.keys()
    if written is not None and written.at is not None and written.at == written_at(native.details):
        # Nobody edited the edge; the columns were missing from the schema for a while.
        removed = set()
    our_pairs = {_pair(mapping, native.parts, downstream_parts) for mapping in edge.columns}
    remaining = [
        each for each in edge.columns if _pair(each, native.parts, downstream_parts) not in removed
    ]
    added = [
        _mapping(pair, function, native.parts, downstream_parts)
        for pair, function in native.columns.items()
        if pair not in before and pair not in our_pairs
    ]
    if not removed and not added:
        return edge
    return msgspec.structs.replace(edge, columns=(*remaining, *added))


def _mapping(
    pair: Pair, function: str | None, parts: tuple[str, ...], downstream_parts: tuple[str, ...]
) -> ColumnMapping:
    return ColumnMapping(
        upstream=_column_path(pair[0], parts),
        downstream=_column_path(pair[1], downstream_parts),
        transformation=function,
    )


def _column_path(fqn: str, parts: tuple[str, ...]) -> str:
    """The path of a column in Lumos, without `[]` and `{}`, since its type is unknown."""
    return ".".join(quoted_name(decode_name(name)) for name in split_fqn(fqn)[len(parts) :])


def _pair(
    mapping: ColumnMapping, parts: tuple[str, ...], downstream_parts: tuple[str, ...]
) -> Pair:
    return _fqn(mapping.upstream, parts), _fqn(mapping.downstream, downstream_parts)


def _fqn(path: str, parts: tuple[str, ...]) -> str:
    return join_fqn(*parts, *(shorten_name(encode_name(name)) for name in _names_in_path(path)))


def _names_in_path(path: str) -> list[str]:
    """The names of a column and its nested fields in a path."""
    names, offset = [], 0
    while match := _STEP.match(path, offset):
        names.append(match["plain"] or match["quoted"].replace("``", "`"))
        offset = match.end()
        if offset == len(path):
            return names
    # Not a path of Lumos, so it is the name of a column.
    return [path]
