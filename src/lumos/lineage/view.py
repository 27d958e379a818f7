"""Upstream and downstream lineage of a dataset or column, and paths between two columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from shlex import quote
from typing import Final, Literal, TypedDict, TypeVar, Unpack

import msgspec

from lumos.errors import MisuseError, did_you_mean
from lumos.lineage.drawing.picture import Arrow, Box, Picture, PictureStep
from lumos.model.catalog import CatalogEntity, consumer_kind
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType
from lumos.model.paths import is_lineage_column, lineage_column
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.schema import Schema
from lumos.model.type_path import field_at
from lumos.model.urn import Urn, display_names
from lumos.names import find_column, find_urn
from lumos.store import Store
from lumos.store.entries import StoredEntry
from lumos.store.lineage import ColumnStep, Direction, MergedEdge
from lumos.store.lineage.edges import merge_edges
from lumos.store.lineage.graph import cycles, shortest_paths

Side = Literal["upstream", "downstream", "both"]
MAX_DATASETS: Final = 500
# Larger pictures would be unreadable with columns.
_MAX_BOXES_WITH_COLUMNS: Final = 40
_Value = TypeVar("_Value")


class LineageReport(Report, frozen=True, kw_only=True):
    """The lineage around a dataset or column."""

    format_version: str = FORMAT_VERSION
    urn: str
    column: str | None
    direction: Side
    depth: int | None
    nodes: tuple[Box, ...]
    edges: tuple[Arrow, ...]
    cycles: tuple[tuple[str, ...], ...]
    total: int
    truncated: bool


class ColumnPathStep(Report, frozen=True, kw_only=True):
    """One step of a path between two columns."""

    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str | None
    kind: Literal["DIRECT", "INDIRECT"]
    columns: tuple[ColumnMapping, ...]
    uses: tuple[ColumnUse, ...]
    origins: tuple[str, ...]
    jobs: tuple[str, ...]


class PathReport(Report, frozen=True, kw_only=True):
    """Paths from one column or dataset downstream to another, shortest first.

    If there are none, `is_reversed` shows whether data flows from the second dataset to the first.
    """

    format_version: str = FORMAT_VERSION
    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str | None
    paths: tuple[tuple[ColumnPathStep, ...], ...]
    truncated: bool
    is_reversed: bool = False


class ViewOptions(TypedDict, total=False):
    """The part of the lineage to show.

    `depth` limits the distance and `limit` the number of datasets. `direct` leaves out columns that
    are only influenced.
    """

    column: str | None
    side: Side
    depth: int | None
    limit: int
    direct: bool


class LineageViewer:
    """Shows the lineage in a store."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store

    @cached_property
    def _store(self) -> Store:
        return self._open_store()

    def split(self, text: str) -> tuple[str, str | None]:
        """Split `orders.customer_id` into dataset and column; the column is None for a dataset.

        A dataset whose name is the entire text takes precedence, since names may contain dots.
        """
        return find_column(self._store, text, with_lineage=True)

    def show(self, dataset: str, **view: Unpack[ViewOptions]) -> LineageReport:
        """The upstream and downstream lineage of a dataset or column."""
        picture = self.picture(dataset, **view)
        return LineageReport(
            urn=picture.urn,
            column=picture.column,
            direction=view.get("side", "both"),
            depth=view.get("depth"),
            nodes=picture.boxes,
            edges=picture.arrows,
            cycles=picture.cycles,
            total=picture.total,
            truncated=picture.truncated,
        )

    def arrows(self) -> tuple[Arrow, ...]:
        """All edges of the store, merged from all reporters."""
        return tuple(map(_arrow, merge_edges(self._store.lineage.all())))

    def drawn(self, dataset: str, format: str, **view: Unpack[ViewOptions]) -> str:
        """Render the lineage as json, dot, mermaid, openlineage or html."""
        if format == "json":
            return to_json(self.show(dataset, **view), indent=2).decode() + "\n"
        from lumos.lineage import drawing

        picture = self.picture(dataset, **view)
        if format == "dot":
            return drawing.dot(picture)
        if format == "mermaid":
            return drawing.mermaid(picture)
        if format == "openlineage":
            events = drawing.events(picture, at=datetime.now(UTC))
            return "".join(to_json(event).decode() + "\n" for event in events)
        if format == "html":
            name = display_names([picture.urn], self._store.names_like([picture.urn]))[picture.urn]
            title = f"Lineage of {name}"
            if picture.column is not None:
                title += f", column {picture.column}"
            return drawing.page(picture, title=title)
        raise MisuseError(
            f"Unknown format '{format}'. Use json, dot, mermaid, openlineage or html."
        )

    def picture(
        self,
        dataset: str,
        *,
        column: str | None = None,
        side: Side = "both",
        depth: int | None = None,
        limit: int = MAX_DATASETS,
        direct: bool = False,
    ) -> Picture:
        """The lineage around a dataset or column, for drawing."""
        urn = find_urn(self._store, dataset, with_lineage=True)
        directions: Sequence[Direction] = ("upstream", "downstream") if side == "both" else (side,)
        if column is None:
            return self._around_dataset(urn, directions, depth, limit)
        start = urn, self._column(urn, column)
        return self._around_column(start, directions, depth, limit, direct=direct)

    def paths(
        self,
        start: tuple[str, str | None],
        goal: tuple[str, str | None],
        *,
        limit: int = 10,
        direct: bool = False,
    ) -> PathReport:
        """Paths from a column of one dataset to a column of another, or between two datasets.

        `direct` leaves out paths on which a column only influences the next one.
        """
        lineage = self._store.lineage
        first, last = (find_urn(self._store, end[0], with_lineage=True) for end in (start, goal))
        first_column = last_column = None
        if start[1] is None and goal[1] is None:
            paths, truncated = self._dataset_paths(first, last, limit)
        else:
            first_column, last_column = self._column(first, start[1]), self._column(last, goal[1])
            column_paths = lineage.paths(
                (first, first_column), (last, last_column), limit=limit, with_uses=not direct
            )
            paths = tuple(tuple(map(_path_step, path)) for path in column_paths.paths)
            truncated = column_paths.truncated
        return PathReport(
            upstream=first,
            upstream_column=first_column,
            downstream=last,
            downstream_column=last_column,
            paths=paths,
            truncated=truncated,
            is_reversed=not paths
            and any(each.urn == first for each in lineage.walk(last, direction="downstream").nodes),
        )

    def _dataset_paths(
        self, first: str, last: str, limit: int
    ) -> tuple[tuple[tuple[ColumnPathStep, ...], ...], bool]:
        """The shortest paths between two datasets, and whether there are more."""
        upstream = self._store.lineage.walk(last, direction="upstream").nodes
        downstream = self._store.lineage.walk(first, direction="downstream")
        urns_between = {each.urn for each in upstream} | {last}
        links = [
            (link.upstream, link.downstream)
            for link in downstream.links
            if link.upstream in urns_between and link.downstream in urns_between
        ]
        steps = (
            (edge.upstream, edge.downstream, edge) for edge in self._store.lineage.between(links)
        )
        paths, truncated = shortest_paths(first, {last}, steps, limit=limit)
        return tuple(tuple(map(_dataset_step, path)) for path in paths), truncated

    def _column(self, urn: str, column: str | None) -> str:
        """The column in the case of the schema, or as given if the dataset has no schema."""
        if column is None:
            raise MisuseError(f"Name a column of {urn}, or no column for both datasets.")
        entry = self._store.entries.get(urn)
        schema = None if entry is None else entry.dataset.schema
        if schema is None:
            return column
        names = [field.name for field in schema.fields]
        if column in names:
            return column
        top_level = lineage_column(column)
        for field in schema.fields:
            if field.name.lower() == column.lower():
                return field.name
            if field.name.lower() == top_level.lower() and field_at(column, field) is not None:
                return field.name + column[len(top_level) :]
        raise MisuseError(
            f"{urn} has no column '{column}'.{did_you_mean(column, names)} "
            f"See its columns with: lumos show {quote(urn)}"
        )

    def _around_dataset(
        self, urn: str, directions: Sequence[Direction], depth: int | None, limit: int
    ) -> Picture:
        depths: dict[str, int] = {urn: 0}
        links: dict[tuple[str, str], None] = {}
        total, truncated = 1, False
        for direction in directions:
            walk = self._store.lineage.walk(urn, direction=direction, depth=depth, limit=limit)
            sign = -1 if direction == "upstream" else 1
            for node in walk.nodes:
                _set_smaller_depth(depths, node.urn, sign * node.depth)
            links |= dict.fromkeys((link.upstream, link.downstream) for link in walk.links)
            total += walk.total - 1
            truncated |= walk.truncated
        arrows = tuple(map(_arrow, self._store.lineage.between(links)))
        arrows_with_columns = arrows if len(depths) <= _MAX_BOXES_WITH_COLUMNS else ()
        return self._make_picture(urn, None, depths, arrows, arrows_with_columns, total, truncated)

    def _around_column(
        self,
        start: tuple[str, str],
        directions: Sequence[Direction],
        depth: int | None,
        limit: int,
        *,
        direct: bool,
    ) -> Picture:
        urn, column = start
        depths: dict[str, int] = {urn: 0}
        steps: dict[ColumnStep, None] = {}
        truncated = False
        for direction in directions:
            walk = self._store.lineage.columns(
                urn, column, direction=direction, depth=depth, past_uses=True, with_uses=not direct
            )
            sign = -1 if direction == "upstream" else 1
            for node in walk.nodes[:limit]:
                _set_smaller_depth(depths, node.urn, sign * node.depth)
            steps |= dict.fromkeys(walk.steps)
            truncated |= walk.truncated or len(walk.nodes) > limit
        steps_in_picture = [
            step for step in steps if {step.upstream.urn, step.downstream.urn} <= depths.keys()
        ]
        arrows = _arrows_of(steps_in_picture)
        picture = self._make_picture(urn, column, depths, arrows, arrows, len(depths), truncated)
        return msgspec.structs.replace(picture, steps=tuple(map(_step, steps_in_picture)))

    def _make_picture(
        self,
        urn: str,
        column: str | None,
        depths: Mapping[str, int],
        arrows: tuple[Arrow, ...],
        arrows_with_columns: Iterable[Arrow],
        total: int,
        truncated: bool,
    ) -> Picture:
        entries = self._store.entries.get_many(list(depths))
        owners = self._store.lineage.owners([each for each in depths if each not in entries])
        consumers = self._store.lineage.consumers(list(depths))
        columns = _columns_of(arrows_with_columns)
        if column is not None:
            columns.setdefault(urn, {})[column] = None
        boxes = (
            _consumer_box(each, depth, consumers[each], columns.get(each, {}))
            if each in consumers
            else _box(each, depth, entries.get(each), columns.get(each, {}), owners.get(each, ()))
            for each, depth in sorted(depths.items(), key=lambda pair: (pair[1], pair[0]))
        )
        return Picture(
            urn=urn,
            column=column,
            boxes=tuple(boxes),
            arrows=arrows,
            cycles=cycles((arrow.upstream, arrow.downstream) for arrow in arrows),
            total=total,
            truncated=truncated,
        )


def _set_smaller_depth(depths: dict[str, int], urn: str, depth: int) -> None:
    """Set the depth of a dataset; if a cycle puts it on both sides, the smaller depth is used."""
    if urn not in depths or abs(depth) < abs(depths[urn]):
        depths[urn] = depth


def _arrow(edge: MergedEdge) -> Arrow:
    return Arrow(
        upstream=edge.upstream,
        downstream=edge.downstream,
        type=edge.type,
        confidence=edge.confidence,
        origins=tuple(dict.fromkeys(each.origin for each in edge.origins)),
        jobs=tuple(dict.fromkeys(each.job for each in edge.origins if each.job is not None)),
        columns=edge.columns,
        uses=edge.uses,
    )


def _arrows_of(steps: Iterable[ColumnStep]) -> tuple[Arrow, ...]:
    """One arrow for all column steps between the same two datasets."""
    by_datasets: dict[tuple[str, str], list[ColumnStep]] = {}
    for step in steps:
        by_datasets.setdefault((step.upstream.urn, step.downstream.urn), []).append(step)
    return tuple(
        Arrow(
            upstream=upstream,
            downstream=downstream,
            type=_type_of(group),
            origins=_distinct(group, lambda step: step.origins),
            jobs=_distinct(group, lambda step: step.jobs),
            columns=_distinct(group, lambda step: step.mappings),
            uses=_distinct(group, lambda step: step.uses),
        )
        for (upstream, downstream), group in sorted(by_datasets.items())
    )


def _type_of(steps: Sequence[ColumnStep]) -> LineageType:
    mappings = [mapping for step in steps for mapping in step.mappings]
    is_copy = bool(mappings) and all(
        each.derivation == "IDENTITY" and is_lineage_column(each.upstream) for each in mappings
    )
    return "COPIED" if is_copy else "TRANSFORMED"


def _distinct(
    steps: Iterable[ColumnStep], get_values: Callable[[ColumnStep], tuple[_Value, ...]]
) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(each for step in steps for each in get_values(step)))


def _columns_of(arrows: Iterable[Arrow]) -> dict[str, dict[str, None]]:
    """The columns in the arrows, by dataset."""
    columns: dict[str, dict[str, None]] = {}
    for arrow in arrows:
        for mapping in arrow.columns:
            columns.setdefault(arrow.upstream, {})[mapping.upstream] = None
            columns.setdefault(arrow.downstream, {})[mapping.downstream] = None
        for use in arrow.uses:
            columns.setdefault(arrow.upstream, {})[use.upstream] = None
            if use.downstream is not None:
                columns.setdefault(arrow.downstream, {})[use.downstream] = None
    return columns


def _consumer_box(urn: str, depth: int, consumer: CatalogEntity, columns: Iterable[str]) -> Box:
    return Box(
        urn=urn,
        name=consumer.display_name or urn,
        platform=Urn.parse(urn).platform,
        depth=depth,
        kind=consumer_kind(consumer),
        url=consumer.properties.get("url", ""),
        owners=tuple(owner.name for owner in consumer.owners),
        columns=tuple(sorted(columns)),
    )


def _box(
    urn: str,
    depth: int,
    entry: StoredEntry | None,
    columns: Iterable[str],
    reported_owners: tuple[str, ...],
) -> Box:
    if entry is None:
        parsed = Urn.parse(urn)
        return Box(
            urn=urn,
            name=parsed.name,
            platform=parsed.platform,
            depth=depth,
            owners=reported_owners,
            columns=tuple(sorted(columns)),
        )
    ownership = entry.dataset.ownership
    return Box(
        urn=urn,
        name=entry.known.name,
        platform=entry.known.platform,
        depth=depth,
        state=entry.known.state,
        owners=tuple(dict.fromkeys(each.name for each in (ownership.owners if ownership else ()))),
        columns=_sort_columns(columns, entry.dataset.schema),
    )


def _sort_columns(columns: Iterable[str], schema: Schema | None) -> tuple[str, ...]:
    positions = {field.name: number for number, field in enumerate(schema.fields if schema else ())}
    last = len(positions)
    return tuple(
        sorted(columns, key=lambda each: (positions.get(lineage_column(each), last), each))
    )


def _step(step: ColumnStep) -> PictureStep:
    return PictureStep(
        upstream=step.upstream.urn,
        upstream_column=step.upstream.column,
        downstream=step.downstream.urn,
        downstream_column=step.downstream.column,
        columns=step.mappings,
        uses=step.uses,
    )


def _dataset_step(edge: MergedEdge) -> ColumnPathStep:
    return ColumnPathStep(
        upstream=edge.upstream,
        upstream_column=None,
        downstream=edge.downstream,
        downstream_column=None,
        kind="DIRECT",
        columns=edge.columns,
        uses=edge.uses,
        origins=tuple(dict.fromkeys(each.origin for each in edge.origins)),
        jobs=tuple(dict.fromkeys(each.job for each in edge.origins if each.job)),
    )


def _path_step(step: ColumnStep) -> ColumnPathStep:
    return ColumnPathStep(
        upstream=step.upstream.urn,
        upstream_column=step.upstream.column,
        downstream=step.downstream.urn,
        downstream_column=step.downstream.column,
        kind=step.kind,
        columns=step.mappings,
        uses=step.uses,
        origins=step.origins,
        jobs=step.jobs,
    )
