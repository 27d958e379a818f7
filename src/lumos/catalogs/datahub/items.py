"""What is not a dataset: terms, users, groups and entities of any kind, in a file or on a server.

DataHub has no entities like the jobs of Lumos, and none for entities that only another catalog can
name. These are platform resources, DataHub's own kind of entity for what only a tool knows.
"""

import hashlib
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import msgspec

from lumos.catalogs.datahub.aspects import (
    CATALOG,
    AspectWrite,
    Entity,
    EntityStore,
    ServerModel,
    aspects_after,
    raw_of_others,
    read_writes,
    writes_in_raw,
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
from lumos.catalogs.interface import Item
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.json_codec import from_json, to_json

_RESOURCE: Final = "platformResource"
_INFO: Final = "platformResourceInfo"
_UNNAMED: Final = "urn:lumos:change:"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_RESOURCE_TYPES: Final[dict[type[Any], str]] = {
    GlossaryTerm: "lumos-term",
    User: "lumos-user",
    Group: "lumos-group",
    Job: "lumos-job",
    CatalogEntity: "lumos-other",
}
_ITEM_TYPES: Final = {text: type for type, text in _RESOURCE_TYPES.items()}
_NAMED: Final = {item_type: entity_type for entity_type, item_type in NAMED_TYPES.items()}


def key_of(item: Item) -> str:
    """The name or URN of an item."""
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name


class DataHubItems:
    """The items in a file or on a server."""

    def __init__(
        self, store: EntityStore, naming: Naming, server: ServerModel | None = None
    ) -> None:
        self._store = store
        self._naming = naming
        self._server = server
        self._codecs: dict[tuple[type[Item], str], Codec[Any]] = {}

    def all(self) -> Iterator[Item]:
        """Every item of a file, in its order."""
        entities = list(self._store.entities())
        yield from self.of(entities, {entity.urn for entity in entities})
        for name in self._store.unnamed():
            yield self._change(name)

    def of(self, entities: Iterable[Entity], known: Container[str]) -> Iterator[Item]:
        """The items that some entities are, of all that are known by their URNs."""
        for entity in entities:
            if entity.type == "dataset":
                continue
            if entity.type == _RESOURCE and (exact := self._exact(entity)) is not None:
                home = self._home(type(exact), key_of(exact))
                if home is None or home.urn not in known:
                    yield exact
                continue
            if (item := self.get(*_item_of(entity))) is not None:
                yield item

    def get(self, type: type[Item], key: str) -> Item | None:
        if self._is_unnamed(key):
            name = key.removeprefix(_UNNAMED)
            return self._change(name) if name in self._store.unnamed() else None
        home = self._home(type, key)
        if home is not None and (writes := read_writes(self._store, home.urn)):
            item: Item = self._codec(type, home).read(_canonical(type, key), writes)
            return item
        return self._exact(_resource(type, key))

    def as_held(self, item: Item) -> Item:
        """The item that `get` returns after this one is put."""
        home = self._home(type(item), key_of(item))
        if home is None or self._is_unnamed(key_of(item)):
            return item
        writes = self._writes(item, home)
        if not writes:
            return item
        codec, key = self._codec(type(item), home), canonical_key(item)
        held: Item = codec.with_names_of(codec.read(key, writes), item)
        return held

    def put(self, item: Item) -> None:
        """Makes an item exactly this, as far as DataHub can hold it."""
        item_type, key = type(item), key_of(item)
        if self._is_unnamed(key):
            change = writes_in_raw(item.raw)[""][0].body
            self._store.add_unnamed(key.removeprefix(_UNNAMED), change)
            return
        home, resource = self._home(item_type, key), _resource(item_type, key)
        writes = [] if home is None else self._writes(item, home, is_sent=False)
        if home is not None:
            self._store.replace(home, writes)
        if writes:
            self._store.replace(resource, [])
        elif self._exact(resource) != item:
            value = {"blob": _in_ascii(to_json(item).decode()), "contentType": "JSON"}
            info = {"resourceType": _RESOURCE_TYPES[item_type], "primaryKey": key, "value": value}
            self._store.replace(resource, [AspectWrite(aspect=_INFO, body=info)])

    def erase(self, item: Item) -> None:
        key = key_of(item)
        if self._is_unnamed(key):
            self._store.remove_unnamed(key.removeprefix(_UNNAMED))
            return
        for entity in (self._home(type(item), key), _resource(type(item), key)):
            if entity is not None:
                self._store.replace(entity, [])

    def needed(self, type: type[Item], key: str) -> tuple[Entity, ...]:
        """The entities that an item may be in."""
        home, resource = self._home(type, key), _resource(type, key)
        if home is None:
            return (resource,)
        # Of other types nothing may be left that a server can hold.
        is_always_held = type is not CatalogEntity or not key.startswith("urn:li:")
        return (home,) if is_always_held else (home, resource)

    def datasets(self, entity: Entity) -> list[str]:
        """The datasets that an entity refers to, as DataHub calls them."""
        codec = self._codec(_item_of(entity)[0], entity)
        if not isinstance(codec, EntityCodec):
            return []
        return codec.datasets(aspects_after(self._store.writes(entity.urn)))

    def _writes(self, item: Item, home: Entity, *, is_sent: bool = True) -> list[AspectWrite]:
        """The writes that make an item, as a server holds them if they were sent."""
        codec = self._codec(type(item), home)
        writes = codec.render(item).writes
        if self._server is None:
            return writes or codec.render(_without_raw(item)).writes
        # An entity of which DataHub can hold nothing else has at least a name.
        aspects = self._server.sendable(home, aspects_after(writes)) or self._server.sendable(
            home, aspects_after(codec.render(_without_raw(item)).writes)
        )
        if is_sent:
            aspects = self._server.normalize(home, aspects)
        return [AspectWrite(aspect=name, body=body) for name, body in aspects.items()]

    def _codec(self, type: type[Item], home: Entity) -> Codec[Any]:
        if (found := self._codecs.get((type, home.type))) is None:
            found = self._codecs[type, home.type] = (
                NamedCodec(type, self._server)
                if type in _NAMED
                else EntityCodec(home.type, self._naming, self._server)
            )
        return found

    def _is_unnamed(self, key: str) -> bool:
        return self._store.has_unnamed and key.startswith(_UNNAMED)

    def _home(self, type: type[Item], key: str) -> Entity | None:
        """The entity that an item is in DataHub, if DataHub has entities of that kind and name."""
        if type in _NAMED:
            home: Entity | None = self._codec(type, Entity(_NAMED[type], "")).entity(key)
        else:
            home = native_entity(key) if type is CatalogEntity else None
        is_held = home is not None and (self._server is None or self._server.holds(home))
        return home if is_held else None

    def _change(self, name: str) -> CatalogEntity:
        change = self._store.unnamed()[name]
        return CatalogEntity(urn=f"{_UNNAMED}{name}", raw={CATALOG: {"": [{"body": change}]}})

    def _exact(self, resource: Entity) -> Item | None:
        """The item that Lumos stored in a platform resource, or None."""
        info = aspects_after(read_writes(self._store, resource.urn)).get(_INFO) or {}
        type = _ITEM_TYPES.get(info.get("resourceType", ""))
        if type is None:
            return None
        try:
            exact: Item = from_json(info["value"]["blob"], type)
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Not written by Lumos; the resource is an entity like others.
            return None
        return exact


def _item_of(entity: Entity) -> tuple[type[Any], str]:
    """The type of item that an entity is, and its name or URN."""
    type = NAMED_TYPES.get(entity.type)
    name = None if type is None else entity_name(entity.type, entity.urn)
    # A name that Lumos would spell differently stays what it is.
    if type is None or name is None or entity_urn(entity.type, name) != entity.urn:
        return CatalogEntity, canonical_urn(entity.urn)
    return type, name


def _without_raw(item: Item) -> Item:
    return msgspec.structs.replace(item, raw=raw_of_others(item.raw))


def canonical_key(item: Item) -> str:
    """The name or URN under which an item is read."""
    return _canonical(type(item), key_of(item))


def _canonical(type: type[Item], key: str) -> str:
    return canonical_urn(key) if type is CatalogEntity else key


def _resource(type: type[Item], key: str) -> Entity:
    urn = entity_urn(_RESOURCE, f"{_RESOURCE_TYPES[type]}.{key}")
    if not is_acceptable(urn):
        mark = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        urn = entity_urn(_RESOURCE, f"{_RESOURCE_TYPES[type]}~{mark}")
    return Entity(_RESOURCE, urn)


def _in_ascii(text: str) -> str:
    """The same JSON text with other characters escaped: DataHub takes it for bytes."""
    if text.isascii():
        return text
    return _BEYOND_ASCII.sub(
        lambda found: "".join(
            f"\\u{unit:04x}" for unit in memoryview(found.group().encode("utf-16-le")).cast("H")
        ),
        text,
    )
