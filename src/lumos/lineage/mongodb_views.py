"""What views of MongoDB are made from: the collections that their pipelines name."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lumos.lineage.reported import Known, Reported, ReportedEdge
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn

_VIEW_ON: Final = "mongodb.view_on"
_PIPELINE: Final = "mongodb.pipeline"
# Stages that bring in another collection, and the key that names it.
_FROM: Final = {"$lookup": "from", "$graphLookup": "from", "$unionWith": "coll"}


def collections_of(view: Dataset) -> tuple[str, ...]:
    """The collections, of its own database, that a view looks at; none where it is no view."""
    told = view.properties or {}
    if view.platform != "mongodb" or _VIEW_ON not in told:
        return ()
    named = [told[_VIEW_ON], *_named(msgspec.json.decode(told.get(_PIPELINE, "[]")))]
    return tuple(dict.fromkeys(named))


def said_by_pipeline(view: Dataset, *, reporter: str) -> Reported:
    """Edges from the collections to the view; which key comes from which is not followed."""
    urn = Urn.parse(view.urn)
    edges = (
        ReportedEdge(
            upstream=Known(urn=str(msgspec.structs.replace(urn, path=(*urn.path[:-1], name)))),
            downstream=Known(urn=view.urn),
        )
        for name in collections_of(view)
    )
    return Reported(reporter=reporter, edges=tuple(edges))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _named(each)
    elif isinstance(value, dict):
        for stage, body in value.items():
            if stage == "$unionWith" and isinstance(body, str):
                yield body
            elif stage in _FROM and isinstance(body, dict):
                name = body.get(_FROM[stage])
                if isinstance(name, str):
                    yield name
            yield from _named(body)
