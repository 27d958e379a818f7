"""What a catalog cannot hold, as text in its free-form properties.

A field that the catalog returns as it was written needs nothing. Any other field is stored as JSON
under `lumos.<field>`, in addition to the part of it that the catalog shows. When it is read again,
edits that people made to the part that is shown are merged into it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

import msgspec

from lumos.catalogs.interface import How
from lumos.catalogs.three_way_merge import MEASURED, merged_aspect
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS
from lumos.model.json_codec import from_json, to_json

_PREFIX: Final = "lumos."
# A user's own property whose name would be taken for one of ours.
_ESCAPE: Final = "lumos.property."
_ENTRY_FIELDS: Final = ("name", "platform", "format", *ASPECTS, "timestamps", "raw")
# What earlier releases called `raw`.
_FORMER: Final = {"carried": "raw"}

Held = TypeVar("Held")


class _Fields(NamedTuple):
    """The fields of a type that can be packed, and the keys of their properties."""

    types: dict[str, Any]
    key: re.Pattern[str]


@cache
def _fields(type: Any) -> _Fields:
    hints = get_type_hints(type)
    # An item is read by its key, and its kind follows from that.
    is_keyed_by_urn = "urn" in hints
    names = (
        _ENTRY_FIELDS
        if type is CatalogEntry
        else [name for name in hints if name not in ("urn", "kind" if is_keyed_by_urn else "name")]
    )
    key = rf"lumos\.(?P<name>{'|'.join((*names, *_FORMER))})(?:\.(?P<part>\d{{1,6}}))?\Z"
    return _Fields({name: hints[name] for name in names}, re.compile(key, re.ASCII))


class Packed(NamedTuple):
    """Properties that make up for what a catalog does not show, and how each aspect is held."""

    properties: dict[str, str]
    held: dict[str, How]


class UnpackedProperties(NamedTuple):
    """A catalog's properties, told apart: the users' own, and aspects that Lumos put there."""

    own: dict[str, str]
    exact: dict[str, Any]


def pack(exact: Any, shown: Any, *, longest: int) -> Packed:
    """Packs whatever of an entry or item a catalog would not return as it is.

    `shown` is what would be read back without any packing; `longest` is the most characters that
    the catalog takes in one property.
    """
    properties: dict[str, str] = {}
    held: dict[str, How] = {}
    kind: Any = type(exact)
    for name in _fields(kind).types:
        value, native = getattr(exact, name), getattr(shown, name)
        # Times in two zones are equal, but not the same in a file.
        if value == native and (name != "timestamps" or to_json(value) == to_json(native)):
            how: How = "native"
        else:
            how = "properties" if native is None else "partly"
            properties.update(_parts(name, _text(value), longest))
        if value is not None and name in ASPECTS:
            held[name] = how
    return Packed(properties, held)


def unpack(properties: Mapping[str, str], type: Any = CatalogEntry) -> UnpackedProperties:
    """Separates packed fields from users' properties; what cannot be read is a user's."""
    fields = _fields(type)
    own: dict[str, str] = {}
    parts: dict[str, dict[int, str]] = {}
    for key, text in properties.items():
        if match := fields.key.match(key):
            name = _FORMER.get(match["name"], match["name"])
            parts.setdefault(name, {})[int(match["part"] or 1)] = text
        else:
            own[key.removeprefix(_ESCAPE)] = text
    exact: dict[str, Any] = {}
    for name, texts in parts.items():
        try:
            exact[name] = _value("".join(texts[part] for part in sorted(texts)), fields.types[name])
        except (msgspec.MsgspecError, LumosError):
            own.update(_labelled(name, texts))
    return UnpackedProperties(own, exact)


def unpacked(properties: Mapping[str, str], type: Any = CatalogEntry) -> dict[str, str]:
    """A catalog's properties without those that fields are packed into, all others as they are."""
    names, pattern = unpack(properties, type).exact.keys(), _fields(type).key
    return {
        key: text
        for key, text in properties.items()
        if (match := pattern.match(key)) is None
        or _FORMER.get(match["name"], match["name"]) not in names
    }


def own_properties(properties: Mapping[str, str], type: Any = CatalogEntry) -> dict[str, str]:
    """Users' properties under names that nothing of ours has."""
    pattern = _fields(type).key
    return {
        f"{_ESCAPE}{key}" if pattern.match(key) or key.startswith(_ESCAPE) else key: text
        for key, text in properties.items()
    }


def restored(
    shown: Held,
    exact: Mapping[str, Any],
    *,
    native: frozenset[str],
    as_shown: Callable[[Held], Held],
) -> Held:
    """What was packed, with what people changed since in the parts that are shown.

    `as_shown` returns what the catalog would show of an entry or item that nobody edited.
    """
    if not exact:
        return shown
    value: Any = shown
    claimed = msgspec.structs.replace(value, **exact)
    then = as_shown(claimed) if native & exact.keys() else None
    now = {
        name: packed
        if then is None or name not in native
        else _since(type(shown), name, getattr(then, name), getattr(shown, name), packed)
        for name, packed in exact.items()
    }
    changed: Held = msgspec.structs.replace(value, **now)
    return changed


def _text(value: Any) -> str:
    """The value as JSON, but words as they are where nobody could take them for JSON."""
    is_plain = isinstance(value, str) and value[:1] not in ("", '"') and value != "null"
    return value if is_plain else to_json(value).decode()


def _value(text: str, type: Any) -> Any:
    is_plain = type in (str, str | None) and text[:1] != '"' and text != "null"
    return text if is_plain else from_json(text, type)


def _since(type: Any, name: str, then: Any, now: Any, exact: Any) -> Any:
    if then == now:
        return exact
    if type is not CatalogEntry or name in MEASURED or name not in ASPECTS or None in (now, exact):
        return now
    if name == "schema" and then.shape != now.shape:
        return now
    return merged_aspect(name, then, now, exact)


def _parts(name: str, text: str, longest: int) -> Iterator[tuple[str, str]]:
    texts = {
        number: text[start : start + longest]
        for number, start in enumerate(range(0, len(text), longest), 1)
    }
    yield from _labelled(name, texts).items()


def _labelled(name: str, texts: Mapping[int, str]) -> dict[str, str]:
    """The texts under the keys of their properties; only one part needs no number."""
    return {
        f"{_PREFIX}{name}" if number == 1 else f"{_PREFIX}{name}.{number}": text
        for number, text in texts.items()
    }
