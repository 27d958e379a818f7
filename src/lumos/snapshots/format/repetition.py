"""Keys that stand twice in one object of JSON: a reader takes one of them, and which is chance."""

import json
from collections.abc import Iterator
from typing import Any


class _Repeated(dict[str, Any]):
    """An object, and the key that stands in it twice."""

    key: str


def repeated_key(data: bytes, *, levels: int | None = None) -> str | None:
    """The path to the first key that stands twice, in so many levels of JSON or in all."""
    # Numbers stay text: how long they are says nothing here.
    plain = json.loads(data, object_pairs_hook=_object, parse_int=str, parse_float=str)
    return next(_paths(plain, "", levels), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _Repeated(plain)
    names = [name for name, _ in pairs]
    repeated.key = next(name for name in names if names.count(name) > 1)
    return repeated


def _paths(plain: Any, path: str, levels: int | None) -> Iterator[str]:
    if levels == 0:
        return
    below = None if levels is None else levels - 1
    if isinstance(plain, _Repeated):
        yield f"{path}.{plain.key}"
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from _paths(value, f"{path}.{key}", below)
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from _paths(value, f"{path}[{index}]", below)
