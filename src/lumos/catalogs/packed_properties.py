"""Packs fields that a catalog cannot store into its custom properties.

A field that the catalog returns unchanged is not packed. Any other field is stored as JSON under
`lumos.<field>`, in addition to the part of it that the catalog shows. Reading merges the edits that
users made to the visible part into the packed value.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

import msgspec

from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.three_way_merge import MEASURED, merge_aspect
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS
from lumos.model.json_codec import from_json, to_json

_PREFIX: Final = "lumos."
# Prefixed to a user's property whose name would be taken for a packed field.
_ESCAPE: Final = "lumos.property."
_ENTRY_FIELDS: Final = ("name", "platform", "format", *ASPECTS, "timestamps", "raw")
# Names of fields in earlier releases.
_EARLIER_NAMES: Final = {"carried": "raw"}

Packable = TypeVar("Packable")


class _PackableFields(NamedTuple):
    """The fields of a type that can be packed, and the keys of their properties."""

    types: dict[str, Any]
    key: re.Pattern[str]


@cache
def _fields(type: Any) -> _PackableFields:
    hints = get_type_hints(type)
    # The key and the kind of an item are never packed: unpacking needs them.
    is_keyed_by_urn = "urn" in hints
    names = (
        _ENTRY_FIELDS
        if type is CatalogEntry
        else [name for name in hints if name not in ("urn", "kind" if is_keyed_by_urn else "name")]
    )
    key = rf"lumos\.(?P<name>{'|'.join((*names, *_EARLIER_NAMES))})(?:\.(?P<part>\d{{1,6}}))?\Z"
    return _PackableFields({name: hints[name] for name in names}, re.compile(key, re.ASCII))


class Packed(NamedTuple):
    """The properties with packed fields, and how the catalog stores each field that is set."""

    properties: dict[str, str]
    storage: dict[str, AspectStorage]


class UnpackedProperties(NamedTuple):
    """Properties of users, and the fields that Lumos packed into properties."""

    own: dict[str, str]
    exact: dict[str, Any]


def pack(exact: Any, shown: Any, *, max_length: int) -> Packed:
    """Pack the fields of an entry or item that a catalog would not return unchanged.

    `shown` is the entry or item that the catalog would return without packing; `max_length` is the
    maximum length of a property in the catalog.
    """
    properties: dict[str, str] = {}
    storage: dict[str, AspectStorage] = {}
    kind: Any = type(exact)
    for name in _fields(kind).types:
        value, native = getattr(exact, name), getattr(shown, name)
        # Times in different zones are equal, but their texts differ.
        if value == native and (name != "timestamps" or to_json(value) == to_json(native)):
            kind_of_storage: AspectStorage = "native"
        else:
            is_shown = native is not None and (name != "raw" or bool(native))
            kind_of_storage = "partly" if is_shown else "properties"
            text = _encode(value)
            starts = enumerate(range(0, len(text), max_length), 1)
            parts = {number: text[start : start + max_length] for number, start in starts}
            properties.update(_keyed_parts(name, parts))
        if value or (name in ASPECTS and value is not None):
            storage[name] = kind_of_storage
    return Packed(properties, storage)


def unpack(properties: Mapping[str, str], type: Any = CatalogEntry) -> UnpackedProperties:
    """Separate packed fields from properties of users, which include invalid packed fields."""
    fields = _fields(type)
    user_properties: dict[str, str] = {}
    parts: dict[str, dict[int, str]] = {}
    for key, text in properties.items():
        if match := fields.key.match(key):
            name = _EARLIER_NAMES.get(match["name"], match["name"])
            parts.setdefault(name, {})[int(match["part"] or 1)] = text
        else:
            user_properties[key.removeprefix(_ESCAPE)] = text
    exact: dict[str, Any] = {}
    for name, texts in parts.items():
        try:
            exact[name] = _decode(
                "".join(texts[part] for part in sorted(texts)), fields.types[name]
            )
        except (msgspec.MsgspecError, LumosError):
            user_properties.update(_keyed_parts(name, texts))
    return UnpackedProperties(user_properties, exact)


def without_packed(properties: Mapping[str, str], type: Any = CatalogEntry) -> dict[str, str]:
    """Remove packed fields; escaped names of users' properties stay escaped."""
    names, pattern = unpack(properties, type).exact.keys(), _fields(type).key
    return {
        key: text
        for key, text in properties.items()
        if (match := pattern.match(key)) is None
        or _EARLIER_NAMES.get(match["name"], match["name"]) not in names
    }


def own_properties(properties: Mapping[str, str], type: Any = CatalogEntry) -> dict[str, str]:
    """Properties of users, with names escaped that would be taken for packed fields."""
    pattern = _fields(type).key
    return {
        f"{_ESCAPE}{key}" if pattern.match(key) or key.startswith(_ESCAPE) else key: text
        for key, text in properties.items()
    }


def restore(
    shown: Packable,
    exact: Mapping[str, Any],
    *,
    native: frozenset[str],
    as_shown: Callable[[Packable], Packable],
) -> Packable:
    """Restore packed fields, and merge the edits that users made to the visible part.

    `as_shown` returns an entry or item as the catalog would return it without packing.
    """
    if not exact:
        return shown
    value: Any = shown
    unedited = None
    if native & exact.keys():
        unedited = as_shown(msgspec.structs.replace(value, **exact))
    fields = {
        name: packed
        if unedited is None or name not in native
        else _with_edits(type(shown), name, getattr(unedited, name), getattr(shown, name), packed)
        for name, packed in exact.items()
    }
    result: Packable = msgspec.structs.replace(value, **fields)
    return result


def _encode(value: Any) -> str:
    """The value as JSON; text that cannot be mistaken for JSON is not encoded."""
    is_plain = isinstance(value, str) and value[:1] not in ("", '"') and value != "null"
    return value if is_plain else to_json(value).decode()


def _decode(text: str, type: Any) -> Any:
    is_plain = type in (str, str | None) and text[:1] != '"' and text != "null"
    return text if is_plain else from_json(text, type)


def _with_edits(type: Any, name: str, unedited: Any, shown: Any, exact: Any) -> Any:
    if unedited == shown:
        return exact
    if (
        type is not CatalogEntry
        or name in MEASURED
        or name not in ASPECTS
        or None in (shown, exact)
        or (name == "schema" and unedited.shape != shown.shape)
    ):
        return shown
    return merge_aspect(name, unedited, shown, exact)


def _keyed_parts(name: str, texts: Mapping[int, str]) -> dict[str, str]:
    """The parts of a packed field by the keys of their properties; the first has no number."""
    return {
        f"{_PREFIX}{name}" if number == 1 else f"{_PREFIX}{name}.{number}": text
        for number, text in texts.items()
    }
