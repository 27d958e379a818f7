"""Glossary terms as terms of Atlas; users, groups, jobs and other items as type `lumos_item`.

Fields without an attribute are packed into a map: `additionalAttributes` of a term, `properties`
of other items.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import lookup_of
from lumos.catalogs.atlas.server import AtlasServer
from lumos.catalogs.interface import CatalogItem
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
    """The terms of all glossaries, by key. New terms go to the glossary `Lumos`.

    The key of a term is its name in that glossary, and `name@glossary` in others.
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
        """The GUID of a term, or None."""
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
                glossaries[glossary] = self._create_glossary()
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

    def _create_glossary(self) -> str:
        attributes = {"qualifiedName": GLOSSARY_NAME, "name": GLOSSARY_NAME}
        entity = {"typeName": types.GLOSSARY, "guid": "-1", "attributes": attributes}
        return self._server.post([entity])["-1"]


class AtlasItems:
    """The items of a server."""

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

    def get(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        entity = self._entity(type, key)
        if entity is None:
            return None
        attributes = entity["attributes"]
        if type is not GlossaryTerm:
            return _decode_item(attributes)
        is_implicit = _IMPLICIT in (attributes.get("additionalAttributes") or {})
        return None if is_implicit else _decode_term(key, attributes)

    def put(self, item: CatalogItem) -> None:
        visible = _visible_part(item)
        properties = {
            **own_properties(item.properties, type(item)),
            **pack(item, visible, max_length=_MAX_TEXT_LENGTH).properties,
        }
        existing = self._entity(type(item), _key(item))
        if isinstance(item, GlossaryTerm):
            values = {"longDescription": item.definition, "additionalAttributes": properties}
            if existing is None or not _has_values(existing, values):
                self._terms.post({item.name: values})
            return
        self._server.define_types()
        name = _qualified_name(type(item), _key(item))
        values = {
            "qualifiedName": name, "lookup": lookup_of(name), "kind": name.partition(":")[0],
            "name": getattr(item, "display_name", None) or name_in(_key(item)) or name,
            "description": getattr(item, "description", None), "properties": properties,
        }  # fmt: skip
        if existing is None or not _has_values(existing, values):
            guid = "-1" if existing is None else existing["guid"]
            self._server.post([{"typeName": types.ITEM, "guid": guid, "attributes": values}])

    def erase(self, item: CatalogItem) -> None:
        entity = self._entity(
            type(item), _key(item), **({} if _is_term(item) else _WITHOUT_RELATIONSHIPS)
        )
        if entity is None:
            return
        relations = entity.get("relationshipAttributes") or {}
        if any(each["relationshipStatus"] == "ACTIVE" and each["entityStatus"] == "ACTIVE"
               for each in relations.get("assignedEntities") or ()):  # fmt: skip
            # Datasets still refer to the term, so it becomes implicit instead of being deleted.
            values = {"longDescription": None, "additionalAttributes": {_IMPLICIT: "true"}}
            self._terms.post({_key(item): values})
            return
        self._server.delete([entity["guid"]])
        self._server.purge([entity["guid"]])
        self._terms.invalidate()

    def _entity(self, type: type[CatalogItem], key: str, **options: bool) -> dict[str, Any] | None:
        guids: list[str] = []
        if type is GlossaryTerm:
            guid = self._terms.guid(key)
            guids = [] if guid is None else [guid]
        elif types.ITEM in self._server.types:
            headers = self._server.find(types.ITEM, [lookup_of(_qualified_name(type, key))])
            guids = [each["guid"] for each in headers if each["status"] == "ACTIVE"][:1]
        return next((entity for entity, _ in self._server.entities(guids, **options)), None)


_WITHOUT_RELATIONSHIPS: Final = {"ignoreRelationships": True, "minExtInfo": True}


def _is_term(item: CatalogItem) -> bool:
    return isinstance(item, GlossaryTerm)


def _has_values(entity: dict[str, Any], values: dict[str, Any]) -> bool:
    attributes = entity["attributes"]
    return all((attributes.get(name) or None) == (value or None) for name, value in values.items())


def _key(item: CatalogItem) -> str:
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name


def _qualified_name(type: type[CatalogItem], key: str) -> str:
    return f"{next(kind for kind, each in _TYPE_BY_KIND.items() if each is type)}:{key}"


def _term_name(key: str) -> str:
    """The escaped name of a term; `@` and `.` are separators in Atlas's qualified names."""
    return re.sub(r"[@.%\x00-\x1f]", lambda char: f"%{ord(char[0]):02X}", key)


def _empty_item(type: type[CatalogItem], key: str) -> Any:
    if type is Job:
        return Job(urn=key, name=name_in(key), platform="")
    return type(urn=key) if type is CatalogEntity else type(name=key)  # type: ignore[call-arg]


def _visible_part(item: Any) -> Any:
    empty = _empty_item(type(item), _key(item))
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
