"""The custom properties that Lumos keeps what OpenMetadata has no place for in.

OpenMetadata takes no property that was not declared for the type of entity. Each is declared when
it is first needed.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from threading import Lock
from typing import Any, Final

from lumos.catalogs.openmetadata.server import Server
from lumos.errors import CatalogTooOld

_DESCRIPTION: Final = "Kept by Lumos: what OpenMetadata has no place of its own for."


class CustomProperties:
    """Which custom properties there are on one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._declared: dict[str, set[str]] = {}
        self._definitions: dict[str, dict[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._lock = Lock()

    def declare(self, type: str, names: Iterable[str]) -> None:
        """Makes sure that entities of a type can have these properties."""
        with self._lock:
            missing = set(names) - self._declared.get(type, set())
            if not missing:
                return
            if type not in self._declared:
                self._read(type)
            for name in sorted(missing - self._declared[type]):
                self._server.put(
                    f"metadata/types/{self._ids[type]}",
                    {"name": name, "description": _DESCRIPTION, "propertyType": self._string},
                )
                self._declared[type].add(name)

    def known(self, type: str) -> frozenset[str]:
        """All properties that entities of a type can have."""
        with self._lock:
            if type not in self._declared:
                self._read(type)
            return frozenset(self._declared[type])

    def definitions(self, type: str, names: Iterable[str]) -> dict[str, Any]:
        """How some properties of a type were declared, without this server's identifiers."""
        with self._lock:
            if type not in self._declared:
                self._read(type)
            known = self._definitions[type]
            return {name: known[name] for name in sorted(names) if name in known}

    def define(self, type: str, definitions: Mapping[str, Any]) -> None:
        """Declares properties as they were on another server, where they are not there."""
        if not definitions:
            return
        with self._lock:
            if type not in self._declared:
                self._read(type)
            for name in sorted(definitions.keys() - self._declared[type]):
                told = definitions[name]
                property_type = {"id": self._type(told["type"])["id"], "type": "type"}
                body = {
                    "name": name,
                    "description": told.get("description") or "",
                    "propertyType": property_type,
                }
                if "config" in told:
                    body["customPropertyConfig"] = told["config"]
                self._server.put(f"metadata/types/{self._ids[type]}", body)
                self._declared[type].add(name)
                self._definitions[type][name] = told

    def refused(self, type: str, extension: Mapping[str, Any], declared: Any) -> frozenset[str]:
        """Properties whose values are no values here, as here they are declared in another way."""
        there = declared if isinstance(declared, dict) else {}
        here = self.definitions(type, extension)
        return frozenset(
            name
            for name, value in extension.items()
            if name in here and name in there and not _fits(value, there[name], here[name])
        )

    def _read(self, type: str) -> None:
        found = self._type(type, fields="customProperties")
        self._ids[type] = found["id"]
        known = found.get("customProperties") or ()
        self._declared[type] = {each["name"] for each in known}
        self._definitions[type] = {each["name"]: _definition(each) for each in known}

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


def _definition(declared: Mapping[str, Any]) -> dict[str, Any]:
    told = {"type": declared["propertyType"].get("name", "string")}
    for key, field in (("description", "description"), ("config", "customPropertyConfig")):
        if declared.get(field):
            told[key] = declared[field]
    return told


def _fits(value: Any, there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    if there.get("type") != here.get("type"):
        return False
    match here.get("config"):
        case config if config == there.get("config"):
            return True
        case {"config": {"values": list(allowed)}} if isinstance(value, list):
            return all(each in allowed for each in value)
        case _:
            return False
