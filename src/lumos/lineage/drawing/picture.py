"""Pictures of lineage, and their output as DOT, Mermaid, OpenLineage events and an HTML page."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType
from lumos.model.urn import SCHEME
from lumos.rendering.layout import layers
from lumos.version import __version__

Mark = Literal["breaking", "undetermined", "compatible"]


class BoxReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason for a verdict; `where` is a position (file:line), `path` a path of columns."""

    text: str
    verdict: Mark
    clause: str = ""
    where: str = ""
    path: tuple[str, ...] = ()


class BoxImpact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The impact of a change on one dataset; the changed dataset has `changes` and no verdict.

    `columns` are its columns that change as a consequence.
    """

    verdict: Mark | None = None
    affected: bool = True
    changes: tuple[str, ...] = ()
    reasons: tuple[BoxReason, ...] = ()
    columns: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()


class Box(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset with its columns; `depth` is its distance from the start, negative if upstream.

    `state` is empty for datasets that are only known from lineage. `kind` and `url` are set for
    consumers that store no data, such as dashboards. `mark` is the verdict that colours the box;
    `impact` explains it.
    """

    urn: str
    name: str
    platform: str
    depth: int = 0
    state: str = ""
    kind: str = ""
    url: str = ""
    owners: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    mark: Mark | None = None
    impact: BoxImpact | None = None


class Arrow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge between two datasets, with its reporters (`origins`), jobs and columns.

    `mark` is the verdict that colours the lines from the upstream columns in `marked`, or all lines
    if `marked` is empty.
    """

    upstream: str
    downstream: str
    # A factory, since omit_defaults omits a value only if it is the same object as the default.
    type: LineageType = msgspec.field(default_factory=lambda: "TRANSFORMED")
    confidence: float = 1.0
    origins: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    mark: Mark | None = None
    marked: tuple[str, ...] = ()


class PictureStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step from one column to another; None means all columns of the dataset.

    Without `columns`, the first column only influences the second.
    """

    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str | None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Picture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage around a dataset or one of its columns."""

    urn: str
    column: str | None = None
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    # For a column, the column steps that are summarised in the arrows.
    steps: tuple[PictureStep, ...] = ()
    cycles: tuple[tuple[str, ...], ...] = ()
    # The number of reachable datasets; `truncated` if some of them are left out.
    total: int = 0
    truncated: bool = False


_COLOURS: Final = {"breaking": "#c0392b", "undetermined": "#d68910", "compatible": "#1e8449"}
_STYLES: Final = {"VIEW": "dashed", "COPIED": "bold", "TRANSFORMED": "solid"}


def dot(picture: Picture) -> str:
    """The picture as a Graphviz digraph."""
    return "\n".join(_dot_lines(picture)) + "\n"


def _dot_lines(picture: Picture) -> Iterator[str]:
    yield "digraph lineage {"
    yield "  rankdir=LR;"
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica"];'
    yield '  edge [fontname="Helvetica", fontsize=10];'
    for box in picture.boxes:
        label = "\n".join((box.name, box.platform, *box.columns))
        attributes = {"label": label, "tooltip": box.urn}
        if box.urn == picture.urn:
            attributes["fillcolor"] = "#dce9f7"
        if box.mark is not None:
            attributes["color"] = _COLOURS[box.mark]
        yield f"  {_quote_dot(box.urn)} [{_attribute_list(attributes)}];"
    for arrow in picture.arrows:
        attributes = {"style": _STYLES[arrow.type]}
        if arrow.columns:
            attributes["label"] = (
                f"{len(arrow.columns)} columns"
                if len(arrow.columns) > 1
                else (f"{arrow.columns[0].upstream} -> {arrow.columns[0].downstream}")
            )
        if arrow.mark is not None:
            attributes["color"] = _COLOURS[arrow.mark]
        upstream, downstream = _quote_dot(arrow.upstream), _quote_dot(arrow.downstream)
        yield f"  {upstream} -> {downstream} [{_attribute_list(attributes)}];"
    yield "}"


def _attribute_list(attributes: dict[str, str]) -> str:
    return ", ".join(f"{name}={_quote_dot(value)}" for name, value in attributes.items())


def _quote_dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'


_ARROWS: Final = {"VIEW": "-.->", "COPIED": "==>", "TRANSFORMED": "-->"}
# Characters that Mermaid needs as numeric entities, with # instead of &#.
_UNSAFE: Final = re.compile(r"[^\w .,/:@+=-]")


def mermaid(picture: Picture) -> str:
    """The picture as a Mermaid flowchart."""
    return "\n".join(_mermaid_lines(picture)) + "\n"


def _mermaid_lines(picture: Picture) -> Iterator[str]:
    yield "flowchart LR"
    ids = {box.urn: f"n{number}" for number, box in enumerate(picture.boxes)}
    for box in picture.boxes:
        label = "<br/>".join(map(_escape_mermaid, (box.name, box.platform, *box.columns)))
        yield f'  {ids[box.urn]}["{label}"]'
    for arrow in picture.arrows:
        count = len(arrow.columns)
        label = f"|{count} column{'' if count == 1 else 's'}|" if count else ""
        yield f"  {ids[arrow.upstream]} {_ARROWS[arrow.type]}{label} {ids[arrow.downstream]}"
    if picture.urn in ids:
        yield f"  style {ids[picture.urn]} stroke-width:3px"
    for box in picture.boxes:
        if box.mark is not None:
            yield f"  style {ids[box.urn]} stroke:{_COLOURS[box.mark]}"
    for number, arrow in enumerate(picture.arrows):
        if arrow.mark is not None:
            yield f"  linkStyle {number} stroke:{_COLOURS[arrow.mark]}"


def _escape_mermaid(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"#{ord(match.group())};", text)


_SPEC: Final = "https://openlineage.io/spec"
_EVENT_SCHEMA: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/JobEvent"
_COLUMN_FACET_SCHEMA: Final = (
    f"{_SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
)
_PRODUCER: Final = f"https://pypi.org/project/lumos/{__version__}"
_NAMESPACE: Final = "lumos"


def events(picture: Picture, *, at: datetime) -> list[dict[str, Any]]:
    """OpenLineage events, one per job and written dataset; URNs are the dataset names."""
    by_job_and_output: dict[tuple[str, str], list[Arrow]] = {}
    for arrow in picture.arrows:
        for job in arrow.jobs or (arrow.downstream,):
            by_job_and_output.setdefault((job, arrow.downstream), []).append(arrow)
    return [
        _event(job, downstream, arrows, at)
        for (job, downstream), arrows in sorted(by_job_and_output.items())
    ]


def _event(job: str, downstream: str, arrows: list[Arrow], at: datetime) -> dict[str, Any]:
    facet = _column_facet(arrows)
    output = _dataset(downstream) | ({"facets": {"columnLineage": facet}} if facet else {})
    return {
        "eventTime": at.isoformat(),
        "producer": _PRODUCER,
        "schemaURL": _EVENT_SCHEMA,
        "job": {"namespace": _NAMESPACE, "name": job.removeprefix(SCHEME)},
        "inputs": [_dataset(arrow.upstream) for arrow in arrows],
        "outputs": [output],
    }


def _dataset(urn: str) -> dict[str, Any]:
    return {"namespace": _NAMESPACE, "name": urn}


def _column_facet(arrows: list[Arrow]) -> dict[str, Any]:
    fields: dict[str, list[dict[str, Any]]] = {}
    dataset_inputs: list[dict[str, Any]] = []
    for arrow in arrows:
        for mapping in arrow.columns:
            subtype = mapping.derivation.value if mapping.derivation else ""
            fields.setdefault(mapping.downstream, []).append(
                _input_field(
                    arrow.upstream, mapping.upstream, "DIRECT", subtype, mapping.transformation
                )
            )
        for use in arrow.uses:
            target = (
                dataset_inputs if use.downstream is None else fields.setdefault(use.downstream, [])
            )
            target.append(
                _input_field(
                    arrow.upstream, use.upstream, "INDIRECT", use.usage.value, use.expression
                )
            )
    if not fields and not dataset_inputs:
        return {}
    facet: dict[str, Any] = {
        "_producer": _PRODUCER,
        "_schemaURL": _COLUMN_FACET_SCHEMA,
        "fields": {name: {"inputFields": inputs} for name, inputs in fields.items()},
    }
    return facet | ({"dataset": dataset_inputs} if dataset_inputs else {})


def _input_field(
    urn: str, field: str, type: str, subtype: str, description: str | None
) -> dict[str, Any]:
    transformation: dict[str, Any] = {"type": type}
    if subtype:
        transformation["subtype"] = subtype
    if description:
        transformation["description"] = description
    transformation["masking"] = False
    return _dataset(urn) | {"field": field, "transformations": [transformation]}


_BOX_WIDTH: Final = 260
_LAYER_SPACING: Final = 120
_HEADER_HEIGHT: Final = 46
_ROW_HEIGHT: Final = 20
_BOX_SPACING: Final = 26
# More columns share one row of a box; the side panel lists all of them.
MAX_COLUMNS: Final = 12


def page(picture: Picture, *, title: str) -> str:
    """One self-contained HTML page to pan, zoom and click, without network access."""
    page_folder = files("lumos.lineage.drawing").joinpath("page")
    template = page_folder.joinpath("page.html").read_text("utf-8")
    values = {
        "TITLE": escape(title, quote=False),
        "STYLE": page_folder.joinpath("page.css").read_text("utf-8"),
        "SCRIPT": page_folder.joinpath("page.js").read_text("utf-8"),
        "PICTURE": _json(_with_positions(picture)),
    }
    # The template is split, since values that contain @@ would break repeated replacements.
    pieces = template.split("@@")
    return "".join(values[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _with_positions(picture: Picture) -> dict[str, Any]:
    """The picture as JSON values, with the position and size of each box."""
    content: dict[str, Any] = msgspec.to_builtins(picture)
    boxes = {box["urn"]: box for box in content.get("boxes", ())}
    arrows = [(arrow.upstream, arrow.downstream) for arrow in picture.arrows]
    for number, layer in enumerate(layers(list(boxes), arrows)):
        heights = [_height(boxes[urn]) for urn in layer]
        top = -(sum(heights) + _BOX_SPACING * (len(layer) - 1)) / 2
        for urn, height in zip(layer, heights, strict=True):
            boxes[urn] |= {
                "x": number * (_BOX_WIDTH + _LAYER_SPACING),
                "y": top,
                "w": _BOX_WIDTH,
                "h": height,
            }
            top += height + _BOX_SPACING
    return content | {
        "headerHeight": _HEADER_HEIGHT,
        "rowHeight": _ROW_HEIGHT,
        "maxColumns": MAX_COLUMNS,
    }


def _height(box: dict[str, Any]) -> int:
    count = len(box.get("columns", ()))
    rows = count if count <= MAX_COLUMNS else MAX_COLUMNS + 1
    return _HEADER_HEIGHT + rows * _ROW_HEIGHT + (8 if rows else 0)


def _json(value: object) -> str:
    """JSON that cannot end the script element that contains it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
