"""Aspects in one normal form, whatever a server filled in: what goes without saying is left out.

A server may add each default of the model or none of them, and it makes some aspects by itself. An
aspect that says nothing reads as one that is not there, since none can be taken back by proposals.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from lumos.catalogs.datahub.built_in import PLATFORMS, default_platform
from lumos.catalogs.datahub.model_shapes import NO_SHAPE, Seen, Shape, shape_of
from lumos.catalogs.datahub.package import classes
from lumos.catalogs.datahub.patches import EMPTY, STAMPS
from lumos.catalogs.datahub.server import key_aspect
from lumos.catalogs.datahub_model.names import entity_name, is_acceptable
from lumos.catalogs.datahub_model.statements import Entity

_BROWSE: Final = "browsePathsV2"
_INSTANCE: Final = "dataPlatformInstance"
# What must not leave a server.
_SECRET: Final = frozenset({"corpUserCredentials"})
# A server's own business: settings, secrets, what it comes with.
_INTERNAL: Final = frozenset(
    {"dataType", "entityType", "globalSettings", "inviteToken", "telemetry"}
)
_INTERNAL_PREFIX: Final = "dataHub"
_BUILT_IN: Final = frozenset({"urn:li:corpuser:datahub", "urn:li:corpuser:__datahub_system"})
_BUILT_IN_PREFIX: Final = "urn:li:ownershipType:__system__"


class DataHubModel:
    """DataHub's model as its package ships it, and what a server was seen to know beyond that."""

    def __init__(self) -> None:
        self._seen_aspects: set[tuple[str, str]] = set()
        self._seen: Seen = set()

    def types(self) -> frozenset[str]:
        """The types of entities."""
        return frozenset(classes().KEY_ASPECTS)

    def is_internal(self, type: str) -> bool:
        """Whether entities of a type are a server's own business."""
        return type in _INTERNAL or type.startswith(_INTERNAL_PREFIX)

    def holds(self, entity: Entity) -> bool:
        platform = entity_name("dataPlatform", entity.urn)
        is_built_in = (
            entity.urn in _BUILT_IN
            or entity.urn.startswith(_BUILT_IN_PREFIX)
            or platform in PLATFORMS
        )
        return not is_built_in and not self.is_internal(entity.type) and is_acceptable(entity.urn)

    def sent(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: _shape(name).sent(body, self._seen)
            for name, body in aspects.items()
            if name in _aspects(entity.type) or (entity.type, name) in self._seen_aspects
        }

    def read(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """What a server told of an entity, and therefore understands."""
        known = _aspects(entity.type)
        self._seen_aspects.update((entity.type, name) for name in aspects if name not in known)
        return self._kept(entity, aspects, self._seen)

    def kept(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return self._kept(entity, aspects, set())

    def without_empty(self, aspects: Mapping[str, Any]) -> dict[str, Any]:
        return {name: body for name, body in aspects.items() if not _says_nothing(name, body)}

    def _kept(self, entity: Entity, aspects: Mapping[str, Any], seen: Seen) -> dict[str, Any]:
        key = key_aspect(entity.type)
        found = {}
        for name, body in aspects.items():
            if name == key or name in _SECRET:
                continue
            kept = _shape(name).kept(body, seen)
            if not _says_nothing(name, kept) and not _is_made_by_server(entity, name, kept):
                found[name] = kept
        return found


@cache
def _shape(aspect: str) -> Shape:
    found = classes().ASPECT_NAME_MAP.get(aspect)
    return NO_SHAPE if found is None else shape_of(found.RECORD_SCHEMA)


@cache
def _aspects(type: str) -> frozenset[str]:
    """The aspects that an entity of a type can have beside its key, as far as they last."""
    key = classes().KEY_ASPECTS.get(type)
    names = classes().ASPECT_NAME_MAP
    return frozenset(
        name
        for name in (() if key is None else key.ASPECT_INFO["entityAspects"])
        if name in names and name not in _SECRET and names[name].ASPECT_TYPE != "timeseries"
    )


def _says_nothing(aspect: str, body: Any) -> bool:
    if aspect not in EMPTY or not isinstance(body, dict):
        return False
    return all(value in ([], {}, None) for name, value in body.items() if name not in STAMPS)


def _is_made_by_server(entity: Entity, aspect: str, body: Any) -> bool:
    if aspect == _INSTANCE:
        return bool(body == {"platform": default_platform(entity)})
    if aspect == _BROWSE:
        path = [tuple(step.items()) for step in body.get("path", ())]
        return path in ([(("id", "Default"),)], _path_of(entity.urn))
    return False


def _path_of(urn: str) -> list[tuple[tuple[str, str], ...]]:
    """Where a server shows a dataset that nobody gave a place: under the parts of its name."""
    name = urn.partition(",")[2].rpartition(",")[0]
    *parents, _ = name.split("/" if "/" in name else ".")
    return [(("id", part),) for part in parents]
