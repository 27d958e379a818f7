"""What changed in an aspect as a patch by keys, so that other people's changes to it stay.

A patch may be sent again without harm. Its paths end in a key that is never empty: servers forget
empty parts at the end of a path.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from lumos.catalogs.datahub.keyed_lists import KEYED, KeyPathStep, steps_between
from lumos.catalogs.datahub_model import facts
from lumos.catalogs.datahub_model.lenses import STAMP

_CUSTOM: Final = "customProperties"
EMPTY: Final[dict[str, Any]] = {
    "domains": {"domains": []},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": []},
    "globalTags": {"tags": []},
    "glossaryTerms": {"terms": [], "auditStamp": STAMP},
    "ownership": {"owners": []},
    "status": {"removed": False},
    "structuredProperties": {"properties": []},
    "upstreamLineage": {"upstreams": []},
}
"""Aspects that can say nothing; others have to be taken out by a call of their own."""
STAMPS: Final = frozenset({"auditStamp", "created", "lastModified"})
"""Who did something and when, which alone says nothing."""


def patch(aspect: str, old: Any, new: Any, sent: Any) -> bytes | None:
    """The patch that makes one body of an aspect the other, or nothing where there is none.

    Either may be None, for an aspect that is not there. Both are in their normal form; `sent` is
    the new one in the form that servers take.
    """
    if aspect in KEYED:
        if new is None:
            # An aspect cannot be taken back, but it can be emptied.
            new = sent = {
                KEYED[aspect].list: [],
                **{name: old[name] for name in old if name in STAMPS},
            }
        return _keyed_patch(aspect, old, new, sent)
    if aspect == facts.PROPERTIES and new is not None:
        return _properties_patch(old, new, sent)
    return None


def _keyed_patch(
    aspect: str, old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    name = KEYED[aspect].list
    lists = (body.get(name) or [] for body in (old or {}, new, sent))
    if (planned := steps_between(KEYED[aspect], *lists)) is None:
        return None
    operations = [
        *(_operation(KeyPathStep((name, *step.path), step.value)) for step in planned.steps),
        *_differences(old, new, sent, without=name),
    ]
    keys = {name: list(planned.keys)}
    return msgspec.json.encode({"arrayPrimaryKeys": keys, "patch": operations})


def _properties_patch(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any]
) -> bytes | None:
    before, after = ((body or {}).get(_CUSTOM) or {} for body in (old, new))
    if "" in before.keys() | after.keys():
        return None
    operations = [
        *(_operation(KeyPathStep((_CUSTOM, name), None)) for name in before if name not in after),
        *(
            _operation(KeyPathStep((_CUSTOM, name), text))
            for name, text in after.items()
            if before.get(name) != text
        ),
        *_differences(old, new, sent, without=_CUSTOM),
    ]
    return msgspec.json.encode(operations)


def _differences(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], sent: Mapping[str, Any], *, without: str
) -> Iterator[dict[str, Any]]:
    # Of an aspect that is not there yet, what goes without saying has to be said, too.
    before, after = ({}, sent) if old is None else (old, new)
    for name in {**before, **after}:
        if name == without or before.get(name) == after.get(name):
            continue
        yield _operation(KeyPathStep((name,), sent[name] if name in after else None))


def _operation(step: KeyPathStep) -> dict[str, Any]:
    if step.value is None:
        return {"op": "remove", "path": _pointer(step.path), "value": {}}
    return {"op": "add", "path": _pointer(step.path), "value": step.value}


def _pointer(path: Sequence[str]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
