"""Entries and items as writes of aspects, and back.

Reading returns the item, and in `raw` those writes that writing the item would not reproduce:
aspects that Lumos does not model, and details of the others. Writing starts with `raw` and changes
only what contradicts the item. Fields that DataHub cannot hold go into custom properties of the
entity; where it has none, they are not held.
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
from lumos.catalogs.interface import How
from lumos.catalogs.packed_properties import own_properties, pack, restore, unpack, without_packed

T = TypeVar("T")

_CUSTOM: Final = "customProperties"
# DataHub's search index takes no longer texts.
_LONGEST: Final = 30_000


class Rendered(NamedTuple):
    """The writes that make an entity what an item is, and how the aspects of an entry are held."""

    writes: list[AspectWrite]
    held: dict[str, How]


class Codec(ABC, Generic[T]):
    """Reads and writes one type of items.

    `custom` is the aspect whose custom properties take what DataHub cannot hold. `shown` are the
    fields that DataHub shows, so that people may edit them. `server` is the model of a server,
    which fills in defaults and holds only aspects; a file holds all writes as they are.
    """

    type: Any
    shown: ClassVar[frozenset[str]]
    custom: str | None

    def __init__(self, server: ServerModel | None = None) -> None:
        self.server = server

    @abstractmethod
    def entity(self, key: str) -> Entity:
        """The entity that an item is in DataHub."""

    @abstractmethod
    def key(self, item: T) -> str:
        """The name or URN of an item."""

    @abstractmethod
    def read_native(self, key: str, aspects: Aspects) -> T:
        """The item that DataHub shows."""

    @abstractmethod
    def write_native(self, aspects: Aspects, item: T, *, is_new: bool) -> None:
        """Set the aspects that show an item, as far as DataHub can."""

    def custom_properties(self, item: T) -> dict[str, str]:
        """The properties of an item that are custom properties in DataHub."""
        found: dict[str, str] = item.properties  # type: ignore[attr-defined]
        return found

    def read(self, key: str, writes: Sequence[AspectWrite]) -> T:
        """The item that an entity is after some writes, with those that must be kept in `raw`."""
        aspects = self.current(writes)
        item = self.decode(key, aspects)
        entity, made = self.entity(key), self._made(item)
        raw = find_unmodelled(writes, made, normalize=lambda each: self.normalize(entity, each))
        raw.update(self.unchanged_raw(item, aspects))
        return _with_raw(item, raw)

    def render(self, item: T) -> Rendered:
        """The writes that say exactly what an item says, as far as DataHub can hold it."""
        kept = writes_in_raw(item.raw)  # type: ignore[attr-defined]
        bare = _replace(item, raw=self.packable_raw(item, kept))
        aspects: Aspects = {}
        held = self._write(aspects, bare)
        if kept:
            aspects = override_aspects(aspects, kept)
            if self.decode(self.key(item), aspects) != bare:
                held = self._write(aspects, bare, is_new=False)
        return Rendered(writes_for(aspects, kept), held)

    def current(self, writes: Iterable[AspectWrite]) -> Aspects:
        """The aspects after some writes."""
        return aspects_after(writes)

    def decode(self, key: str, aspects: Aspects) -> T:
        """The item in some aspects: what DataHub shows, and what is packed into properties."""
        shown = self.read_native(key, aspects)
        if self.custom is None:
            return shown
        exact = unpack(read_custom(aspects, self.custom), self.type).exact
        return restore(shown, exact, native=self.shown, as_shown=self._as_shown)

    def with_names_of(self, shown: T, item: T) -> T:  # noqa: ARG002
        """What DataHub shows of an item, under the names that the item uses for the same."""
        return shown

    def packable_raw(self, item: T, kept: Writes) -> dict[str, Any]:  # noqa: ARG002
        """What is packed of `raw`: what other catalogs have."""
        return raw_of_others(item.raw)  # type: ignore[attr-defined]

    def unchanged_raw(self, item: T, aspects: Aspects) -> dict[str, Any]:  # noqa: ARG002
        """Packed writes of aspects that nobody has changed since."""
        return {}

    def normalize(self, entity: Entity, write: AspectWrite) -> AspectWrite:
        """A write as it is kept in `raw`: without packed fields and a server's defaults."""
        if not write.replaces:
            return write
        body = write.body
        if write.aspect == self.custom:
            custom = body.get(_CUSTOM) or {}
            own = without_packed(custom, self.type)
            body = body if own == custom else {**body, _CUSTOM: own}
        if self.server is not None:
            body = self.server.normalize(entity, {write.aspect: body}).get(write.aspect)
        return msgspec.structs.replace(write, body=body)

    def _made(self, item: T) -> Aspects:
        """The aspects that are written of an item without `raw`, as they are read again."""
        made: Aspects = {}
        self._write(made, item)
        return (
            made
            if self.server is None
            else self.server.normalize(self.entity(self.key(item)), made)
        )

    def _write(self, aspects: Aspects, item: T, *, is_new: bool = True) -> dict[str, How]:
        self.write_native(aspects, item, is_new=is_new)
        if self.custom is None:
            return {}
        own = own_properties(self.custom_properties(item), self.type)
        self._write_custom(aspects, item, own)
        shown = self.read_native(self.key(item), self._returned(aspects))
        packed = pack(item, self.with_names_of(shown, item), longest=_LONGEST)
        self._write_custom(aspects, item, {**own, **packed.properties})
        return packed.held

    def _write_custom(self, aspects: Aspects, item: T, properties: dict[str, str]) -> None:
        assert self.custom is not None, "only aspects with custom properties have them"
        if properties == read_custom(aspects, self.custom):
            return
        if self.custom not in aspects:
            # Other keys of the aspect are required.
            self.write_native(aspects, item, is_new=True)
        update_aspect(aspects, self.custom, **{_CUSTOM: properties})

    def _as_shown(self, item: T) -> T:
        aspects: Aspects = {}
        self._write(aspects, item)
        return self.read_native(self.key(item), self._returned(aspects))

    def _returned(self, aspects: Aspects) -> Aspects:
        """Aspects without those that a server does not return because they are empty."""
        return aspects if self.server is None else self.server.without_empty(aspects)


def read_custom(aspects: Aspects, aspect: str) -> dict[str, str]:
    """The custom properties in an aspect, packed fields among them."""
    return (aspects.get(aspect) or {}).get(_CUSTOM) or {}


def read_own(aspects: Aspects, aspect: str, type: Any) -> dict[str, str]:
    """The custom properties in an aspect without packed fields."""
    return unpack(read_custom(aspects, aspect), type).own


def _with_raw(item: T, raw: dict[str, Any]) -> T:
    others = raw_of_others(item.raw)  # type: ignore[attr-defined]
    now = {**others, CATALOG: raw} if raw else others
    return item if now == item.raw else _replace(item, raw=now)  # type: ignore[attr-defined]


def _replace(item: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(item, **fields)
