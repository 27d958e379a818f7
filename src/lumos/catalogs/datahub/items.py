"""Items in a file or on a server: terms, users, groups and all entities that are not datasets.

DataHub has no entities for the jobs of Lumos and for entities with URNs of other catalogs. These
are stored as platform resources, DataHub's kind of entity for data of tools.
"""

import hashlib
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import msgspec

from lumos.catalogs.datahub.aspects import (
    AspectWrite,
    Entity,
    EntityStore,
    ServerModel,
    aspects_after,
    raw_of_others,
    read_writes,
)
from lumos.catalogs.datahub.codec import Codec
from lumos.catalogs.datahub.entities import (
    NAMED_TYPES,
    EntityCodec,
    NamedCodec,
    canonical_urn,
    native_entity,
)
from lumos.catalogs.datahub.names import Naming, entity_name, entity_urn, is_acceptable
from lumos.catalogs.interface import CatalogItem, item_key
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User, entity_id
from lumos.model.json_codec import from_json, to_json

_RESOURCE: Final = "platformResource"
_INFO: Final = "platformResourceInfo"
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_RESOURCE_TYPES: Final[dict[type[Any], str]] = {
    GlossaryTerm: "lumos-term",
    User: "lumos-user",
    Group: "lumos-group",
    Job: "lumos-job",
    CatalogEntity: "lumos-other",
}
_ITEM_TYPES: Final = {text: type for type, text in _RESOURCE_TYPES.items()}
_NAMED: Final = {item_type: entity_type for entity_type, item_type in NAMED_TYPES.items()}


class DataHubItems:
    """The items in a file or on a server."""

    def __init__(
        self, store: EntityStore, naming: Naming, server: ServerModel | None = None
    ) -> None:
        self._store = store
        self._naming = naming
        self._server = server
        self._codecs: dict[tuple[type[CatalogItem], str], Codec[Any]] = {}

    def all(self) -> Iterator[CatalogItem]:
        """All items of a file, in the order of the file."""
        entities = list(self._store.entities())
        yield from self.of(entities, {entity.urn for entity in entities})

    def of(self, entities: Iterable[Entity], known: Container[str]) -> Iterator[CatalogItem]:
        """The items that are stored in `entities`; `known` are the URNs of all entities."""
        for entity in entities:
            if entity.type == "dataset":
                continue
            if entity.type == _RESOURCE and (exact := self._item_in_resource(entity)) is not None:
                native = self._native_entity(type(exact), item_key(exact))
                if native is None or native.urn not in known:
                    yield exact
                continue
            if (item := self.get(*_item_key_of(entity))) is not None:
                yield item

    def get(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        native = self._native_entity(type, key)
        if native is not None and (writes := read_writes(self._store, native.urn)):
            item: CatalogItem = self._codec(type, native).read(_canonical(type, key), writes)
            return item
        return self._item_in_resource(_resource_of(type, key))

    def as_stored(self, item: CatalogItem) -> CatalogItem:
        """The item that `get` returns after this one is put."""
        native = self._native_entity(type(item), item_key(item))
        if native is None:
            return item
        writes = self._writes(item, native)
        if not writes:
            return item
        codec, key = self._codec(type(item), native), canonical_key(item)
        stored: CatalogItem = codec.with_references_of(codec.read(key, writes), item)
        return stored

    def put(self, item: CatalogItem) -> None:
        """Replace an item, as far as DataHub can store it."""
        item_type, key = type(item), item_key(item)
        native, resource = self._native_entity(item_type, key), _resource_of(item_type, key)
        writes = [] if native is None else self._writes(item, native, is_sent=False)
        if native is not None:
            self._store.replace(native, writes)
        if writes:
            self._store.replace(resource, [])
        elif self._item_in_resource(resource) != item:
            value = {"blob": _escape_non_ascii(to_json(item).decode()), "contentType": "JSON"}
            info = {"resourceType": _RESOURCE_TYPES[item_type], "primaryKey": key, "value": value}
            self._store.replace(resource, [AspectWrite(aspect=_INFO, body=info)])

    def erase(self, item: CatalogItem) -> None:
        key = item_key(item)
        for entity in (self._native_entity(type(item), key), _resource_of(type(item), key)):
            if entity is not None:
                self._store.replace(entity, [])

    def stored_in(self, type: type[CatalogItem], key: str) -> tuple[Entity, ...]:
        """The entities that an item may be stored in."""
        native, resource = self._native_entity(type, key), _resource_of(type, key)
        if native is None:
            return (resource,)
        # If a server cannot store an entity of another type, the item is in a resource. Earlier
        # versions stored all entities of other catalogs in resources.
        is_always_stored = type is not CatalogEntity or entity_id(key) is not None
        return (native,) if is_always_stored else (native, resource)

    def datasets(self, entity: Entity) -> list[str]:
        """The DataHub URNs of the datasets that an entity refers to."""
        codec = self._codec(_item_key_of(entity)[0], entity)
        if not isinstance(codec, EntityCodec):
            return []
        return codec.datasets(aspects_after(self._store.writes(entity.urn)))

    def _writes(
        self, item: CatalogItem, native: Entity, *, is_sent: bool = True
    ) -> list[AspectWrite]:
        """The writes of an item; with `is_sent`, as a server returns them."""
        codec = self._codec(type(item), native)
        writes = codec.render(item).writes
        if self._server is None:
            return writes or codec.render(_without_raw(item)).writes
        # If DataHub can store nothing of `raw`, at least the name is written.
        aspects = self._server.sendable(native, aspects_after(writes)) or self._server.sendable(
            native, aspects_after(codec.render(_without_raw(item)).writes)
        )
        if is_sent:
            aspects = self._server.normalize(native, aspects)
        return [AspectWrite(aspect=name, body=body) for name, body in aspects.items()]

    def _codec(self, type: type[CatalogItem], native: Entity) -> Codec[Any]:
        if (codec := self._codecs.get((type, native.type))) is None:
            codec = codec_of(type, native, self._naming, self._server)
            self._codecs[type, native.type] = codec
        return codec

    def _native_entity(self, type: type[CatalogItem], key: str) -> Entity | None:
        """The DataHub entity of an item, or None if DataHub cannot have it."""
        native = entity_of_item(type, key)
        is_stored = native is not None and (self._server is None or self._server.can_store(native))
        return native if is_stored else None

    def _item_in_resource(self, resource: Entity) -> CatalogItem | None:
        """The item that Lumos stored in a platform resource, or None."""
        info = aspects_after(read_writes(self._store, resource.urn)).get(_INFO) or {}
        type = _ITEM_TYPES.get(info.get("resourceType", ""))
        if type is None:
            return None
        try:
            exact: CatalogItem = from_json(info["value"]["blob"], type)
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Lumos did not write the resource, so it is an entity like any other.
            return None
        return exact


def entity_of_item(type: type[CatalogItem], key: str) -> Entity | None:
    """The DataHub entity of an item, or None for items without a counterpart in DataHub."""
    if type in _NAMED:
        return Entity(_NAMED[type], entity_urn(_NAMED[type], key))
    return native_entity(key) if type is CatalogEntity else None


def codec_of(
    type: type[CatalogItem], native: Entity, naming: Naming, server: ServerModel | None
) -> Codec[Any]:
    if type in _NAMED:
        return NamedCodec(type, server)
    return EntityCodec(native.type, naming, server)


def _item_key_of(entity: Entity) -> tuple[type[Any], str]:
    """The item type of an entity, and the name or URN of the item."""
    type = NAMED_TYPES.get(entity.type)
    name = None if type is None else entity_name(entity.type, entity.urn)
    # If the URN does not round-trip, the item has the URN of DataHub as its key.
    if type is None or name is None or entity_urn(entity.type, name) != entity.urn:
        return CatalogEntity, canonical_urn(entity.urn)
    return type, name


def _without_raw(item: CatalogItem) -> CatalogItem:
    return msgspec.structs.replace(item, raw=raw_of_others(item.raw))


def canonical_key(item: CatalogItem) -> str:
    """The name or URN under which an item is read."""
    return _canonical(type(item), item_key(item))


def _canonical(type: type[CatalogItem], key: str) -> str:
    return canonical_urn(key) if type is CatalogEntity else key


def _resource_of(type: type[CatalogItem], key: str) -> Entity:
    urn = entity_urn(_RESOURCE, f"{_RESOURCE_TYPES[type]}.{key}")
    if not is_acceptable(urn):
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        urn = entity_urn(_RESOURCE, f"{_RESOURCE_TYPES[type]}~{digest}")
    return Entity(_RESOURCE, urn)


def _escape_non_ascii(text: str) -> str:
    """Escape characters outside of ASCII in JSON, since DataHub stores the text as bytes."""
    if text.isascii():
        return text
    return _NOT_ASCII.sub(
        lambda match: "".join(
            f"\\u{unit:04x}" for unit in memoryview(match.group().encode("utf-16-le")).cast("H")
        ),
        text,
    )
