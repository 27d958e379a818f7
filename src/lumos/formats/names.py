"""Names for columns that have none, or the same one twice."""

from collections.abc import Sequence

import msgspec

from lumos.model.schema import Schema


def distinct_names(names: Sequence[str]) -> list[str]:
    """A name for every column; missing and repeated ones get their place as a suffix."""
    taken = set(names)
    if len(taken) == len(names) and "" not in taken:
        return list(names)
    used: set[str] = set()
    distinct: list[str] = []
    for place, given in enumerate(names, start=1):
        name = given or f"column_{place}"
        while name in used or (name != given and name in taken):
            name = f"{name}_{place}"
        used.add(name)
        distinct.append(name)
    return distinct


def nameless(names: Sequence[str]) -> str | None:
    """The one of some distinct names that stands for a missing one, if any does."""
    places = enumerate(names, start=1)
    return next((name for place, name in places if _stands_in(name, place)), None)


def _stands_in(name: str, place: int) -> bool:
    start = f"column_{place}"
    return name.startswith(start) and not name[len(start) :].replace(f"_{place}", "")


def with_distinct_names(schema: Schema) -> Schema:
    """The schema with a name for every column, and none twice."""
    names = [field.name for field in schema.fields]
    distinct = distinct_names(names)
    if names == distinct:
        return schema
    renamed = zip(schema.fields, distinct, strict=True)
    return Schema(
        fields=tuple(msgspec.structs.replace(field, name=name) for field, name in renamed)
    )
