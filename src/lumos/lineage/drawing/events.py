"""A picture as OpenLineage events: one for each job, or for each dataset that is written.

Datasets keep their URNs as names, so that what is read back means the same datasets.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from lumos.lineage.drawing.picture import Arrow, Picture
from lumos.model.lineage import ColumnMapping, ColumnUse
from lumos.model.urn import SCHEME
from lumos.version import __version__

_SPEC: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/JobEvent"
_COLUMNS: Final = (
    f"{_SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
)
_PRODUCER: Final = f"https://pypi.org/project/lumos/{__version__}"
_NAMESPACE: Final = "lumos"


def events(picture: Picture, *, at: datetime) -> list[dict[str, Any]]:
    """The events, each of them a plain JSON object."""
    return [
        _event(job, downstream, arrows, at)
        for (job, downstream), arrows in sorted(_by_job(picture.arrows).items())
    ]


def _by_job(arrows: Iterable[Arrow]) -> dict[tuple[str, str], list[Arrow]]:
    found: dict[tuple[str, str], list[Arrow]] = {}
    for arrow in arrows:
        for job in arrow.jobs or (arrow.downstream,):
            found.setdefault((job, arrow.downstream), []).append(arrow)
    return found


def _event(job: str, downstream: str, arrows: list[Arrow], at: datetime) -> dict[str, Any]:
    facet = _column_facet(arrows)
    output = _dataset(downstream) | ({"facets": {"columnLineage": facet}} if facet else {})
    return {
        "eventTime": at.isoformat(),
        "producer": _PRODUCER,
        "schemaURL": _EVENT,
        "job": {"namespace": _NAMESPACE, "name": job.removeprefix(SCHEME)},
        "inputs": [_dataset(arrow.upstream) for arrow in arrows],
        "outputs": [output],
    }


def _dataset(urn: str) -> dict[str, Any]:
    return {"namespace": _NAMESPACE, "name": urn}


def _column_facet(arrows: list[Arrow]) -> dict[str, Any]:
    fields: dict[str, list[dict[str, Any]]] = {}
    whole: list[dict[str, Any]] = []
    for arrow in arrows:
        for mapping in arrow.columns:
            fields.setdefault(mapping.downstream, []).append(_made(arrow.upstream, mapping))
        for use in arrow.uses:
            into = whole if use.downstream is None else fields.setdefault(use.downstream, [])
            into.append(_decides(arrow.upstream, use))
    if not fields and not whole:
        return {}
    facet: dict[str, Any] = {
        "_producer": _PRODUCER,
        "_schemaURL": _COLUMNS,
        "fields": {name: {"inputFields": inputs} for name, inputs in fields.items()},
    }
    return facet | ({"dataset": whole} if whole else {})


def _made(urn: str, mapping: ColumnMapping) -> dict[str, Any]:
    derivation = mapping.derivation.value if mapping.derivation else ""
    return _input(urn, mapping.upstream, "DIRECT", derivation, mapping.transformation)


def _decides(urn: str, use: ColumnUse) -> dict[str, Any]:
    return _input(urn, use.upstream, "INDIRECT", use.usage.value, use.expression)


def _input(urn: str, field: str, type: str, subtype: str, text: str | None) -> dict[str, Any]:
    transformation = dict(_transformation(type, subtype, text))
    return _dataset(urn) | {"field": field, "transformations": [transformation]}


def _transformation(type: str, subtype: str, text: str | None) -> Iterator[tuple[str, Any]]:
    yield "type", type
    if subtype:
        yield "subtype", subtype
    if text:
        yield "description", text
    yield "masking", False
