"""Encodes entries and items as writes of aspects, and decodes them.

Reading returns the item; `raw` contains the writes that encoding the item would not reproduce:
aspects that Lumos does not model, and details of the others. Writing starts with `raw` and changes
only the values that contradict the item. Fields that DataHub cannot store are packed: stored as
JSON in custom properties of the entity. If the entity can have none, these fields are lost.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec

from lumos.catalogs.datahub.aspects import (
    CATALOG,
    Aspects,
    AspectWrite,
    Entity,
    ServerModel,
    Writes,
    aspects_after,
    find_unmodelled,
    override_aspects,
    raw_of_others,
    update_aspect,
    writes_for,
    writes_in_raw,
)
from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.packed_properties import own_properties, pack, restore, unpack, without_packed

T = TypeVar("T")

_CUSTOM: Final = "customProperties"
# DataHub's search index rejects longer texts.
_MAX_TEXT_LENGTH: Final = 30_000


class RenderedItem(NamedTuple):
    """The writes of an item, and how DataHub stores each aspect of an entry."""

    writes: list[AspectWrite]
    storage: dict[str, AspectStorage]


class Codec(ABC, Generic[T]):
    """Reads and writes one type of items.

    `custom` is the aspect with custom properties, into which fields are packed that DataHub cannot
    store. `visible_fields` are the fields that DataHub shows, so that users may edit them. `server`
    is the model of a server, which fills in defaults and only stores the resulting aspects; None
    for items in a file, which stores all writes unchanged.
    """

    type: Any
    visible_fields: ClassVar[frozenset[str]]
    custom: str | None

    def __init__(self, server: ServerModel | None = None) -> None:
        self.server = server

    @abstractmethod
    def entity(self, key: str) -> Entity:
        """The DataHub entity of an item."""

    @abstractmethod
    def key(self, item: T) -> str:
        """The name or URN of an item."""

    @abstractmethod
    def read_native(self, key: str, aspects: Aspects) -> T:
        """Decode the item as DataHub shows it."""

    @abstractmethod
    def write_native(self, aspects: Aspects, item: T, *, is_new: bool) -> None:
        """Set the aspects for the fields of an item that DataHub has."""

    def custom_properties(self, item: T) -> dict[str, str]:
        """The properties of an item that are custom properties in DataHub."""
        properties: dict[str, str] = item.properties  # type: ignore[attr-defined]
        return properties

    def read(self, key: str, writes: Sequence[AspectWrite]) -> T:
        """Decode an item; writes that encoding it would not reproduce go into `raw`."""
        aspects = self.current(writes)
        item = self.decode(key, aspects)
        entity, modelled = self.entity(key), self._modelled_aspects(item)
        raw = find_unmodelled(writes, modelled, normalize=lambda each: self.normalize(entity, each))
        raw.update(self.unedited_raw(item, aspects))
        return _with_raw(item, raw)

    def render(self, item: T) -> RenderedItem:
        """Encode an item as writes; fields that DataHub cannot store are packed or dropped."""
        raw_writes = writes_in_raw(item.raw)  # type: ignore[attr-defined]
        without_raw = _replace(item, raw=self.raw_to_pack(item, raw_writes))
        aspects: Aspects = {}
        storage = self._write(aspects, without_raw)
        if raw_writes:
            aspects = override_aspects(aspects, raw_writes)
            if self.decode(self.key(item), aspects) != without_raw:
                storage = self._write(aspects, without_raw, is_new=False)
        return RenderedItem(writes_for(aspects, raw_writes), storage)

    def current(self, writes: Iterable[AspectWrite]) -> Aspects:
        return aspects_after(writes)

    def decode(self, key: str, aspects: Aspects) -> T:
        """Decode an item from visible fields and packed properties."""
        visible = self.read_native(key, aspects)
        if self.custom is None:
            return visible
        packed = unpack(read_custom(aspects, self.custom), self.type).exact
        return restore(visible, packed, native=self.visible_fields, as_shown=self._round_trip)

    def with_references_of(self, visible: T, item: T) -> T:  # noqa: ARG002
        """Replace references by those of `item` that refer to the same entities."""
        return visible

    def raw_to_pack(self, item: T, raw_writes: Writes) -> dict[str, Any]:  # noqa: ARG002
        """The part of `raw` that is packed: the records of other catalogs."""
        return raw_of_others(item.raw)  # type: ignore[attr-defined]

    def unedited_raw(self, item: T, aspects: Aspects) -> dict[str, Any]:  # noqa: ARG002
        """Packed writes of aspects that were not edited in DataHub since Lumos wrote them."""
        return {}

    def normalize(self, entity: Entity, write: AspectWrite) -> AspectWrite:
        """A write without packed fields and without defaults of the server."""
        if not write.replaces:
            return write
        body = write.body
        if write.aspect == self.custom:
            custom = body.get(_CUSTOM) or {}
            user_properties = without_packed(custom, self.type)
            body = body if user_properties == custom else {**body, _CUSTOM: user_properties}
        if self.server is not None:
            body = self.server.normalize(entity, {write.aspect: body}).get(write.aspect)
        return msgspec.structs.replace(write, body=body)

    def _modelled_aspects(self, item: T) -> Aspects:
        """The aspects that Lumos writes for an item without `raw`, as the server returns them."""
        aspects: Aspects = {}
        self._write(aspects, item)
        if self.server is None:
            return aspects
        return self.server.normalize(self.entity(self.key(item)), aspects)

    def _write(self, aspects: Aspects, item: T, *, is_new: bool = True) -> dict[str, AspectStorage]:
        self.write_native(aspects, item, is_new=is_new)
        if self.custom is None:
            return {}
        user_properties = own_properties(self.custom_properties(item), self.type)
        self._write_custom(aspects, item, user_properties)
        visible = self.read_native(self.key(item), self._as_server_returns(aspects))
        packed = pack(item, self.with_references_of(visible, item), max_length=_MAX_TEXT_LENGTH)
        self._write_custom(aspects, item, {**user_properties, **packed.properties})
        return packed.storage

    def _write_custom(self, aspects: Aspects, item: T, properties: dict[str, str]) -> None:
        assert self.custom is not None, f"{self.type} has no aspect for custom properties"
        if properties == read_custom(aspects, self.custom):
            return
        if self.custom not in aspects:
            # The aspect has other required keys.
            self.write_native(aspects, item, is_new=True)
        update_aspect(aspects, self.custom, **{_CUSTOM: properties})

    def _round_trip(self, item: T) -> T:
        aspects: Aspects = {}
        self._write(aspects, item)
        return self.read_native(self.key(item), self._as_server_returns(aspects))

    def _as_server_returns(self, aspects: Aspects) -> Aspects:
        """Aspects without those that a server does not return because they are empty."""
        return aspects if self.server is None else self.server.without_empty(aspects)


def read_custom(aspects: Aspects, aspect: str) -> dict[str, str]:
    """The custom properties in an aspect, including packed fields."""
    return (aspects.get(aspect) or {}).get(_CUSTOM) or {}


def read_unpacked_properties(aspects: Aspects, aspect: str, type: Any) -> dict[str, str]:
    """The custom properties in an aspect without packed fields."""
    return unpack(read_custom(aspects, aspect), type).own


def _with_raw(item: T, raw: dict[str, Any]) -> T:
    others = raw_of_others(item.raw)  # type: ignore[attr-defined]
    combined = {**others, CATALOG: raw} if raw else others
    return item if combined == item.raw else _replace(item, raw=combined)  # type: ignore[attr-defined]


def _replace(item: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(item, **fields)
