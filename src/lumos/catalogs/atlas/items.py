"""Glossary terms as terms of Atlas; users, groups, jobs and other items as type `lumos_item`.

Fields without an attribute are stored as JSON in a map: `additionalAttributes` of a term,
`properties` of other items.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import lookup_of
from lumos.catalogs.atlas.server import AtlasServer
from lumos.catalogs.chunks import in_halves
from lumos.catalogs.interface import CatalogItem, FailedEntry, item_key
from lumos.catalogs.nearest_kinds import shared_kind
from lumos.catalogs.packed_properties import own_properties, pack, restore, unpack
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.urn import name_in

GLOSSARY_NAME: Final = "Lumos"
# The attribute of a term that only exists because a dataset refers to it.
_IMPLICIT: Final = "lumos.implicit"
_MAX_TEXT_LENGTH: Final = 30_000
_NATIVE: Final = frozenset({"definition", "description", "properties"})
_TYPE_BY_KIND: Final[dict[str, type[Any]]] = {
    "entity": CatalogEntity, "group": Group, "job": Job, "user": User,
}  # fmt: skip


class AtlasTerms:
    """The terms of all glossaries by key; new terms are created in the glossary `Lumos`.

    The key of a term is its name if it is in `Lumos`, and `name@glossary` if in another glossary.
    """

    def __init__(self, server: AtlasServer) -> None:
        self._server = server
        self._guids: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._is_loaded = False

    def key(self, guid: str, name: str) -> str:
        """The key of a term; `name` if the term is unknown."""
        if guid not in self._keys:
            self._load()
        return self._keys.get(guid, name)

    def guid(self, key: str) -> str | None:
        if not self._is_loaded:
            self._load()
        return self._guids.get(key)

    def all(self) -> list[tuple[str, str]]:
        """The GUIDs and keys of all terms."""
        self._load()
        return list(self._keys.items())

    def create(self, keys: set[str]) -> None:
        """Create the terms that do not exist, as targets of references."""
        self.post(
            {key: {"additionalAttributes": {_IMPLICIT: "true"}} for key in sorted(keys)
             if self.guid(key) is None}
        )  # fmt: skip

    def post(self, attributes: dict[str, dict[str, Any]]) -> None:
        """Create or update terms, given by key."""
        if not attributes:
            return
        glossaries = {
            header["attributes"].get("qualifiedName"): header["guid"]
            for header in self._server.active(types.GLOSSARY)
        }
        entities = []
        for number, (key, values) in enumerate(attributes.items(), 1):
            name, glossary = _term_name(key), GLOSSARY_NAME
            if (guid := self.guid(key)) is not None:
                name, _, glossary = self._names[guid].rpartition("@")
            elif glossary not in glossaries:
                own = {"qualifiedName": GLOSSARY_NAME, "name": GLOSSARY_NAME}
                entity = {"typeName": types.GLOSSARY, "guid": "-1", "attributes": own}
                glossaries[glossary] = self._server.post([entity])["-1"]
            anchor = {"guid": glossaries[glossary], "typeName": types.GLOSSARY}
            identity = {"name": name, "qualifiedName": f"{name}@{glossary}"}
            entities.append({
                "typeName": types.TERM, "guid": guid or f"-{number}",
                "attributes": {**identity, **values}, "relationshipAttributes": {"anchor": anchor},
            })  # fmt: skip
        created = self._server.post(entities)
        for number, key in enumerate(attributes, 1):
            if (guid_created := created.get(f"-{number}")) is not None:
                self._keys[guid_created], self._guids[key] = key, guid_created
                self._names[guid_created] = f"{_term_name(key)}@{GLOSSARY_NAME}"

    def invalidate(self) -> None:
        """Read the terms again before the next lookup."""
        self._is_loaded = False

    def _load(self) -> None:
        self._guids, self._keys, self._names, self._is_loaded = {}, {}, {}, True
        for header in self._server.active(types.TERM):
            self._names[header["guid"]] = header["attributes"]["qualifiedName"]
            name, _, glossary = header["attributes"]["qualifiedName"].rpartition("@")
            key = unquote(name) if glossary == GLOSSARY_NAME else f"{name}@{glossary}"
            self._guids[key] = header["guid"]
            self._keys[header["guid"]] = key


class AtlasItems:
    """Reads and writes the items of one server."""

    def __init__(self, server: AtlasServer, terms: AtlasTerms) -> None:
        self._server = server
        self._terms = terms

    def all(self) -> Iterator[CatalogItem]:
        keys = dict(self._terms.all())
        for entity, _ in self._server.entities(list(keys), **_WITHOUT_RELATIONSHIPS):
            attributes = entity["attributes"]
            if _IMPLICIT not in (attributes.get("additionalAttributes") or {}):
                yield _decode_term(keys[entity["guid"]], attributes)
        if types.ITEM in self._server.types:
            headers = self._server.all(types.ITEM)
            guids = [each["guid"] for each in headers if each["status"] == "ACTIVE"]
            for entity, _ in self._server.entities(guids, **_WITHOUT_RELATIONSHIPS):
                yield _decode_item(entity["attributes"])

    def get_many(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        items: dict[str, CatalogItem] = {}
        for key, entity in self._entities(type, keys).items():
            attributes = entity["attributes"]
            if type is not GlossaryTerm:
                items[key] = _decode_item(attributes)
            elif _IMPLICIT not in (attributes.get("additionalAttributes") or {}):
                items[key] = _decode_term(key, attributes)
        return items

    def put_many(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        for item, problem in in_halves(items, self._put):
            if problem is not None:
                yield FailedEntry(item_key(item), problem)

    def _put(self, items: Sequence[CatalogItem]) -> None:
        terms: dict[str, dict[str, Any]] = {}
        entities: list[dict[str, Any]] = []
        item_types: list[type[Any]] = [GlossaryTerm, *_TYPE_BY_KIND.values()]
        for item_type in item_types:
            by_key = {item_key(item): item for item in items if isinstance(item, item_type)}
            existing = self._entities(item_type, list(by_key))
            for key, item in by_key.items():
                values, entity = _attributes(item), existing.get(key)
                attributes = {} if entity is None else entity["attributes"]
                if entity is not None and all(
                    (attributes.get(name) or None) == (value or None)
                    for name, value in values.items()
                ):
                    continue
                if item_type is GlossaryTerm:
                    terms[key] = values
                else:
                    guid = f"-{len(entities) + 1}" if entity is None else entity["guid"]
                    body = {"typeName": types.ITEM, "guid": guid, "attributes": values}
                    entities.append(body)
        self._terms.post(terms)
        if entities:
            self._server.define_types()
            self._server.post(entities)

    def erase(self, item: CatalogItem) -> None:
        key, is_term = item_key(item), isinstance(item, GlossaryTerm)
        options = {} if is_term else _WITHOUT_RELATIONSHIPS
        entity = self._entities(type(item), [key], **options).get(key)
        if entity is None:
            return
        relations = entity.get("relationshipAttributes") or {}
        if any(each["relationshipStatus"] == "ACTIVE" and each["entityStatus"] == "ACTIVE"
               for each in relations.get("assignedEntities") or ()):  # fmt: skip
            # Datasets still refer to the term, so it becomes implicit instead of being deleted.
            values = {"longDescription": None, "additionalAttributes": {_IMPLICIT: "true"}}
            self._terms.post({key: values})
            return
        self._server.delete([entity["guid"]])
        self._server.purge([entity["guid"]])
        self._terms.invalidate()

    def _entities(
        self, type: type[CatalogItem], keys: Sequence[str], **options: bool
    ) -> dict[str, dict[str, Any]]:
        """The entities of items that exist, by key."""
        guids: dict[str, str] = {}
        if type is GlossaryTerm:
            guids = {guid: key for key in keys if (guid := self._terms.guid(key)) is not None}
        elif keys and types.ITEM in self._server.types:
            names = {_qualified_name(type, key): key for key in keys}
            for header in self._server.find(types.ITEM, [lookup_of(name) for name in names]):
                name = header["attributes"]["qualifiedName"]
                if header["status"] == "ACTIVE" and name in names:
                    guids[header["guid"]] = names[name]
        entities = self._server.entities(list(guids), **options)
        return {guids[entity["guid"]]: entity for entity, _ in entities}


_WITHOUT_RELATIONSHIPS: Final = {"ignoreRelationships": True, "minExtInfo": True}


def _attributes(item: CatalogItem) -> dict[str, Any]:
    packed = pack(item, _visible_part(item), max_length=_MAX_TEXT_LENGTH).properties
    properties = {**own_properties(item.properties, type(item)), **packed}
    if isinstance(item, GlossaryTerm):
        return {"longDescription": item.definition, "additionalAttributes": properties}
    key = item_key(item)
    name = _qualified_name(type(item), key)
    return {
        "qualifiedName": name, "lookup": lookup_of(name), "kind": name.partition(":")[0],
        "name": getattr(item, "display_name", None) or name_in(key) or name,
        "description": getattr(item, "description", None), "properties": properties,
    }  # fmt: skip


def _qualified_name(type: type[CatalogItem], key: str) -> str:
    return f"{next(kind for kind, each in _TYPE_BY_KIND.items() if each is type)}:{key}"


def _term_name(key: str) -> str:
    """The escaped name of a term; `@` and `.` are separators in Atlas's qualified names."""
    return re.sub(r"[@.%\x00-\x1f]", lambda char: f"%{ord(char[0]):02X}", key)


def _empty_item(type: type[CatalogItem], key: str) -> Any:
    if type is Job:
        return Job(urn=key, name=name_in(key), platform="")
    if type is CatalogEntity:
        return CatalogEntity(urn=key, kind=shared_kind(key))
    return type(name=key)  # type: ignore[call-arg]


def _visible_part(item: Any) -> Any:
    empty = _empty_item(type(item), item_key(item))
    values = {name: getattr(item, name) for name in _NATIVE if hasattr(empty, name)}
    return msgspec.structs.replace(empty, **values)


def _unpack_item(empty: Any, text: str | None, properties: dict[str, str]) -> Any:
    unpacked = unpack(properties, type(empty))
    texts = {name: text for name in ("definition", "description") if hasattr(empty, name)}
    visible = msgspec.structs.replace(empty, properties=unpacked.own, **texts)
    return restore(visible, unpacked.exact, native=_NATIVE, as_shown=_visible_part)


def _decode_term(key: str, attributes: dict[str, Any]) -> GlossaryTerm:
    text = attributes.get("longDescription")
    text = attributes.get("shortDescription") if text is None else text
    term: GlossaryTerm = _unpack_item(
        _empty_item(GlossaryTerm, key), text, attributes.get("additionalAttributes") or {}
    )
    return term


def _decode_item(attributes: dict[str, Any]) -> CatalogItem:
    kind, _, key = attributes["qualifiedName"].partition(":")
    properties = attributes.get("properties") or {}
    item: CatalogItem = _unpack_item(
        _empty_item(_TYPE_BY_KIND[kind], key), attributes.get("description"), properties
    )
    return item
