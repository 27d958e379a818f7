"""Lineage: `upstreamLineage` holds the datasets that a dataset is made from, column by column.

Downstream lineage is stored with the other datasets, and therefore in the properties.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from lumos.catalogs.datahub import field_paths
from lumos.catalogs.datahub.aspects import STAMP, Aspects, AspectWrite
from lumos.catalogs.datahub.names import (
    Naming,
    can_mean,
    field_name,
    field_urn,
    is_ambiguous,
    is_apart,
    lumos_urn,
)
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping, LineageType

UPSTREAM: Final = "upstreamLineage"
# The URN of the dataset that an edge written by Lumos leads to, since DataHub's name of a dataset
# can mean several. Other edges follow the name.
_URN: Final = "lumos.urn"
# What the text of an aspect has somewhere if its edges settle what names mean.
MARKS: Final = (_URN.encode(), b"%40")
_TO_DATAHUB: Final[dict[LineageType, str]] = {
    "TRANSFORMED": "TRANSFORMED",
    "COPIED": "COPY",
    "VIEW": "VIEW",
}
_FROM_DATAHUB: Final = {text: type for type, text in _TO_DATAHUB.items()}


def read_lineage(aspects: Aspects, naming: Naming) -> Lineage | None:
    if UPSTREAM not in aspects:
        return None
    columns: dict[str, list[ColumnMapping]] = {}
    for item in aspects[UPSTREAM].get("fineGrainedLineages") or ():
        for dataset, mapping in _mappings(item):
            columns.setdefault(dataset, []).append(mapping)
    edges = []
    for item in aspects[UPSTREAM].get("upstreams") or ():
        # An edge that is there twice has its columns once.
        mappings = tuple(columns.pop(item["dataset"], ()))
        edges.append(
            UpstreamEdge(
                urn=_edge_urn(item, naming),
                type=_FROM_DATAHUB.get(item.get("type", ""), "TRANSFORMED"),
                columns=mappings,
            )
        )
    return Lineage(upstream=tuple(edges))


def write_lineage(aspects: Aspects, lineage: Lineage | None, naming: Naming, own: str) -> None:
    """Changes the edges that changed; `own` is the dataset's name in DataHub."""
    if lineage is None:
        aspects.pop(UPSTREAM, None)
        return
    body = aspects.get(UPSTREAM) or {}
    old = {item["dataset"]: item for item in body.get("upstreams") or ()}
    upstreams, wanted = [], []
    for edge in lineage.upstream:
        dataset = naming.datahub(edge.urn)
        if dataset is None:
            # No dataset; the properties carry it.
            continue
        upstreams.append(_upstream(old.get(dataset), dataset, edge, naming))
        shown = dict.fromkeys(map(_shown_mapping, edge.columns))
        wanted += [(dataset, column) for column in shown if _has_names(column)]
    seen = old.keys() | {item["dataset"] for item in upstreams}
    fields = _column_lineage(body.get("fineGrainedLineages") or (), wanted, own, seen)
    aspects[UPSTREAM] = {**body, "upstreams": upstreams}
    if fields or "fineGrainedLineages" in body:
        aspects[UPSTREAM]["fineGrainedLineages"] = fields


def without_stated_urns(write: AspectWrite) -> AspectWrite:
    """A write without the URNs that Lumos wrote into edges."""
    if write.aspect != UPSTREAM or not write.replaces:
        return write
    upstreams = [_plain_edge(item) for item in write.body.get("upstreams") or ()]
    if upstreams == (write.body.get("upstreams") or []):
        return write
    return msgspec.structs.replace(write, body={**write.body, "upstreams": upstreams})


def stated_datasets(aspects: Aspects) -> Iterator[tuple[str, str]]:
    """The names of datasets in edges, and the URNs that Lumos wrote into these."""
    for item in (aspects.get(UPSTREAM) or {}).get("upstreams") or ():
        if (stated := _stated_urn(item)) is not None:
            yield item["dataset"], stated
        elif is_apart(item["dataset"]) and (urn := lumos_urn(item["dataset"])) is not None:
            yield item["dataset"], str(urn)


def _plain_edge(item: Any) -> Any:
    if _stated_urn(item) is None:
        return item
    left = {key: text for key, text in item["properties"].items() if key != _URN}
    plain = {key: value for key, value in item.items() if key != "properties"}
    return {**plain, "properties": left} if left else plain


def _upstream(old: Any, dataset: str, edge: UpstreamEdge, naming: Naming) -> dict[str, Any]:
    item = {**(old or {"auditStamp": STAMP}), "dataset": dataset, "type": _TO_DATAHUB[edge.type]}
    if is_ambiguous(dataset) or naming.lumos(dataset) != edge.urn:
        item["properties"] = {**(item.get("properties") or {}), _URN: edge.urn}
    return item


def _column_lineage(
    items: Any, wanted: list[tuple[str, ColumnMapping]], own: str, seen: Collection[str]
) -> list[dict[str, Any]]:
    """Items with nothing but wanted mappings stay; the other mappings are added one by one.

    Columns of datasets that no edge leads to are not seen as lineage, so they stay, too.
    """
    left = list(wanted)
    found = []
    for item in items:
        mappings = [mapping for mapping in _mappings(item) if mapping[0] in seen]
        if all(mapping in left for mapping in mappings):
            found.append(item)
            for mapping in mappings:
                left.remove(mapping)
    return [*found, *(_column_item(dataset, column, own) for dataset, column in left)]


def _column_item(dataset: str, column: ColumnMapping, own: str) -> dict[str, Any]:
    item = {
        "upstreamType": "FIELD_SET",
        "upstreams": [field_urn(dataset, field_paths.plain(column.upstream))],
        "downstreamType": "FIELD",
        "downstreams": [field_urn(own, field_paths.plain(column.downstream))],
        "confidenceScore": 1.0,
    }
    if column.transformation is not None:
        item["transformOperation"] = column.transformation
    return item


def _shown_mapping(column: ColumnMapping) -> ColumnMapping:
    """As much of a mapping as DataHub has a place for."""
    return ColumnMapping(
        upstream=column.upstream,
        downstream=column.downstream,
        transformation=column.transformation,
    )


def _has_names(column: ColumnMapping) -> bool:
    """DataHub has no field without a name."""
    return all(map(field_paths.plain, (column.upstream, column.downstream)))


def _mappings(item: Any) -> list[tuple[str, ColumnMapping]]:
    """Which column of which dataset goes into which of ours."""
    if item.get("upstreamType") != "FIELD_SET":
        return []
    upstreams, downstreams = (
        [field for urn in item.get(side) or () if (field := field_name(urn)) is not None]
        for side in ("upstreams", "downstreams")
    )
    return [
        (
            upstream.dataset,
            ColumnMapping(
                upstream=_column_path(upstream.path),
                downstream=_column_path(downstream.path),
                transformation=item.get("transformOperation"),
            ),
        )
        for downstream in downstreams
        for upstream in upstreams
    ]


def _column_path(path: str) -> str:
    return field_paths.parsed(path).lumos if path.startswith(field_paths.VERSION) else path


def _edge_urn(item: Any, naming: Naming) -> str:
    stated = _stated_urn(item)
    return naming.lumos(item["dataset"]) if stated is None else stated


def _stated_urn(item: Any) -> str | None:
    """The URN that Lumos wrote into an edge."""
    stated: str | None = (item.get("properties") or {}).get(_URN)
    return stated if stated is not None and can_mean(item["dataset"], stated) else None
