"""Reads and writes the aspect `upstreamLineage`: upstream datasets and columns of a dataset.

DataHub stores no downstream lineage in this aspect: Lumos stores it as JSON in the custom
properties of the dataset.
"""

from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from lumos.catalogs.datahub import field_paths
from lumos.catalogs.datahub.aspects import STAMP, Aspects, AspectWrite
from lumos.catalogs.datahub.names import (
    Naming,
    field_name,
    field_urn,
    has_explicit_instance,
    is_ambiguous,
    lumos_urn,
    may_refer_to,
)
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping, LineageType

UPSTREAM: Final = "upstreamLineage"
# The property of an edge with the URN of its dataset in Lumos, since DataHub's URN is ambiguous.
_URN_PROPERTY: Final = "lumos.urn"
# Texts that occur in every aspect with an explicit URN or instance (`%40`).
URN_MARKERS: Final = (_URN_PROPERTY.encode(), b"%40")
_TO_DATAHUB: Final[dict[LineageType, str]] = {
    "TRANSFORMED": "TRANSFORMED",
    "COPIED": "COPY",
    "VIEW": "VIEW",
}
_FROM_DATAHUB: Final = {text: type for type, text in _TO_DATAHUB.items()}


def upstream_urns(entry: CatalogEntry) -> Iterator[str]:
    """The URNs of the upstream datasets of an entry."""
    for edge in entry.lineage.upstream if entry.lineage else ():
        yield edge.urn


def read_lineage(aspects: Aspects, naming: Naming) -> Lineage | None:
    if UPSTREAM not in aspects:
        return None
    columns: dict[str, list[ColumnMapping]] = {}
    for item in aspects[UPSTREAM].get("fineGrainedLineages") or ():
        for dataset, mapping in _mappings(item):
            columns.setdefault(dataset, []).append(mapping)
    edges = []
    for item in aspects[UPSTREAM].get("upstreams") or ():
        # A duplicate edge gets no columns.
        mappings = tuple(columns.pop(item["dataset"], ()))
        edges.append(
            UpstreamEdge(
                urn=_explicit_urn(item) or naming.to_lumos(item["dataset"]),
                type=_FROM_DATAHUB.get(item.get("type", ""), "TRANSFORMED"),
                columns=mappings,
            )
        )
    return Lineage(upstream=tuple(edges))


def write_lineage(
    aspects: Aspects, lineage: Lineage | None, naming: Naming, downstream_urn: str
) -> None:
    """Write the edges that changed; `downstream_urn` is the DataHub URN of the dataset."""
    if lineage is None:
        aspects.pop(UPSTREAM, None)
        return
    body = aspects.get(UPSTREAM) or {}
    old = {item["dataset"]: item for item in body.get("upstreams") or ()}
    upstreams, wanted = [], []
    for edge in lineage.upstream:
        dataset = naming.to_datahub(edge.urn)
        if dataset is None:
            # Not the URN of a dataset: the edge is only stored in the custom properties.
            continue
        upstreams.append(_upstream_item(old.get(dataset), dataset, edge, naming))
        # DataHub stores no other fields of a mapping, and requires names on both sides.
        mappings = dict.fromkeys(
            ColumnMapping(
                upstream=each.upstream,
                downstream=each.downstream,
                transformation=each.transformation,
            )
            for each in edge.columns
            if all(map(field_paths.to_plain, (each.upstream, each.downstream)))
        )
        wanted += [(dataset, column) for column in mappings]
    datasets_with_edge = old.keys() | {item["dataset"] for item in upstreams}
    fields = _column_lineage(
        body.get("fineGrainedLineages") or (), wanted, downstream_urn, datasets_with_edge
    )
    aspects[UPSTREAM] = {**body, "upstreams": upstreams}
    if fields or "fineGrainedLineages" in body:
        aspects[UPSTREAM]["fineGrainedLineages"] = fields


def without_explicit_urns(write: AspectWrite) -> AspectWrite:
    """Remove the URNs that Lumos added to edges."""
    if write.aspect != UPSTREAM or not write.replaces:
        return write
    upstreams = [_without_explicit_urn(item) for item in write.body.get("upstreams") or ()]
    if upstreams == (write.body.get("upstreams") or []):
        return write
    return msgspec.structs.replace(write, body={**write.body, "upstreams": upstreams})


def explicit_urn_pairs(aspects: Aspects) -> Iterator[tuple[str, str]]:
    """Yield (DataHub URN, Lumos URN) of edges whose Lumos URN is explicit or has an instance."""
    for item in (aspects.get(UPSTREAM) or {}).get("upstreams") or ():
        if (explicit := _explicit_urn(item)) is not None:
            yield item["dataset"], explicit
        elif (
            has_explicit_instance(item["dataset"])
            and (urn := lumos_urn(item["dataset"])) is not None
        ):
            yield item["dataset"], str(urn)


def _without_explicit_urn(item: Any) -> Any:
    if _explicit_urn(item) is None:
        return item
    properties = {key: text for key, text in item["properties"].items() if key != _URN_PROPERTY}
    plain = {key: value for key, value in item.items() if key != "properties"}
    return {**plain, "properties": properties} if properties else plain


def _upstream_item(old: Any, dataset: str, edge: UpstreamEdge, naming: Naming) -> dict[str, Any]:
    item = {**(old or {"auditStamp": STAMP}), "dataset": dataset, "type": _TO_DATAHUB[edge.type]}
    if is_ambiguous(dataset) or naming.to_lumos(dataset) != edge.urn:
        item["properties"] = {**(item.get("properties") or {}), _URN_PROPERTY: edge.urn}
    return item


def _column_lineage(
    items: Any,
    wanted: list[tuple[str, ColumnMapping]],
    downstream_urn: str,
    datasets_with_edge: Collection[str],
) -> list[dict[str, Any]]:
    """The existing items that contain only wanted mappings, and new items for other mappings.

    Existing items of datasets without an edge stay, since `read_lineage` ignores them.
    """
    remaining = list(wanted)
    kept_items = []
    for item in items:
        mappings = [mapping for mapping in _mappings(item) if mapping[0] in datasets_with_edge]
        if all(mapping in remaining for mapping in mappings):
            kept_items.append(item)
            for mapping in mappings:
                remaining.remove(mapping)
    return [
        *kept_items,
        *(_column_item(dataset, column, downstream_urn) for dataset, column in remaining),
    ]


def _column_item(dataset: str, column: ColumnMapping, downstream_urn: str) -> dict[str, Any]:
    item = {
        "upstreamType": "FIELD_SET",
        "upstreams": [field_urn(dataset, field_paths.to_plain(column.upstream))],
        "downstreamType": "FIELD",
        "downstreams": [field_urn(downstream_urn, field_paths.to_plain(column.downstream))],
        "confidenceScore": 1.0,
    }
    if column.transformation is not None:
        item["transformOperation"] = column.transformation
    return item


def _mappings(item: Any) -> list[tuple[str, ColumnMapping]]:
    """The mappings in an item, each with the upstream dataset."""
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
    return field_paths.parse(path).lumos_path if path.startswith(field_paths.VERSION) else path


def _explicit_urn(item: Any) -> str | None:
    """The URN in Lumos that Lumos added to an edge, or None."""
    explicit: str | None = (item.get("properties") or {}).get(_URN_PROPERTY)
    return explicit if explicit is not None and may_refer_to(item["dataset"], explicit) else None
