"""Declares custom properties, in which Lumos stores fields that OpenMetadata does not have.

OpenMetadata rejects properties that are not declared for an entity type. Each is declared when it
is first needed.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final

from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogTooOld

_DESCRIPTION: Final = "Written by Lumos: metadata that OpenMetadata has no field for."


class CustomProperties:
    """The custom properties of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._declared: dict[str, set[str]] = {}
        self._definitions: dict[str, dict[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._lock = Lock()

    def declare(self, type: str, names: Iterable[str]) -> None:
        """Declare missing properties of Lumos for an entity type."""
        with self._lock:
            missing = set(names)
            for name in sorted(missing - self._known(type) if missing else missing):
                self._server.put(
                    f"metadata/types/{self._ids[type]}",
                    {"name": name, "description": _DESCRIPTION, "propertyType": self._string},
                )
                self._declared[type].add(name)

    def declared(self, type: str) -> frozenset[str]:
        """The declared properties of an entity type."""
        with self._lock:
            return frozenset(self._known(type))

    def definitions(self, type: str, names: Iterable[str]) -> dict[str, Any]:
        """The definitions of some properties, without identifiers of this server."""
        with self._lock:
            declared = self._known(type) & set(names)
            known = self._definitions[type]
            return {name: known[name] for name in sorted(declared & known.keys())}

    def define(self, type: str, definitions: Mapping[str, Any]) -> None:
        """Declare missing properties with the definitions of another server."""
        if not definitions:
            return
        with self._lock:
            for name in sorted(definitions.keys() - self._known(type)):
                definition = definitions[name]
                property_type = {"id": self._type(definition["type"])["id"], "type": "type"}
                body = {
                    "name": name,
                    "description": definition.get("description") or "",
                    "propertyType": property_type,
                }
                if "config" in definition:
                    body["customPropertyConfig"] = definition["config"]
                self._server.put(f"metadata/types/{self._ids[type]}", body)
                self._declared[type].add(name)
                self._definitions[type][name] = definition

    def incompatible(
        self, type: str, extension: Mapping[str, Any], declared: Any
    ) -> frozenset[str]:
        """Properties whose values are invalid here, because their definitions differ."""
        source = declared if isinstance(declared, dict) else {}
        target = self.definitions(type, extension)
        return frozenset(
            name
            for name, value in extension.items()
            if name in target
            and name in source
            and not _is_compatible(value, source[name], target[name])
        )

    def _known(self, type: str) -> set[str]:
        """The declared properties of an entity type, which are read once."""
        if type not in self._declared:
            found = self._type(type, fields="customProperties")
            self._ids[type] = found["id"]
            known = found.get("customProperties") or ()
            self._definitions[type] = {each["name"]: _portable_definition(each) for each in known}
            self._declared[type] = set(self._definitions[type])
        return self._declared[type]

    @cached_property
    def _string(self) -> dict[str, str]:
        return {"id": self._type("string")["id"], "type": "type"}

    def _type(self, name: str, **query: Any) -> Any:
        found = self._server.get(f"metadata/types/name/{name}", **query)
        if found is None:
            raise CatalogTooOld(
                self._server.platform, f"the type '{name}'", needed="custom properties on it"
            )
        return found


def _portable_definition(declared: Mapping[str, Any]) -> dict[str, Any]:
    definition = {"type": declared["propertyType"].get("name", "string")}
    for key, field in (("description", "description"), ("config", "customPropertyConfig")):
        if declared.get(field):
            definition[key] = declared[field]
    return definition


def _is_compatible(value: Any, source: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    if source.get("type") != target.get("type"):
        return False
    match target.get("config"):
        case config if config == source.get("config"):
            return True
        case {"config": {"values": list(allowed)}} if isinstance(value, list):
            return all(each in allowed for each in value)
        case _:
            return False
