"""DataHub's metadata model as the package ships it: what a server would take, and in which form."""

import os
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any
from urllib.parse import quote

# Before the package is imported: it would write to the home directory and call its makers.
os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")

_LONGEST_URN = 512
_AVRO = "com.linkedin.pegasus2avro."


class Invalid(Exception):
    """A proposal that a server answers with 422."""


@cache
def _classes() -> ModuleType:
    import datahub.metadata.schema_classes as classes

    return classes


@cache
def aspects_of(entity: str) -> frozenset[str]:
    """The aspects that entities of a type may have, their key included."""
    key = _classes().KEY_ASPECTS.get(entity)
    if key is None:
        raise Invalid(f"Failed to find entity with name {entity} in EntityRegistry")
    return frozenset((key.ASPECT_NAME, *key.ASPECT_INFO["entityAspects"]))


def entities() -> list[str]:
    return sorted(_classes().KEY_ASPECTS)


def key_name(entity: str) -> str:
    return str(_classes().KEY_ASPECTS[entity].ASPECT_NAME)


def wire_name(aspect: str) -> str:
    """What an aspect's record is called in a union of the wire."""
    name = str(_classes().ASPECT_NAME_MAP[aspect].RECORD_SCHEMA.fullname)
    return name.replace(_AVRO, "com.linkedin.", 1)


def key_of(urn: str) -> tuple[str, dict[str, Any]]:
    """An entity's key aspect: its name and its body."""
    from datahub.metadata.urns import Urn

    key = Urn.from_string(urn).to_key_aspect()  # type: ignore[attr-defined]
    return key.ASPECT_NAME, _sent(key.to_obj())


def check_urn(entity: str, urn: str) -> None:
    from datahub.metadata.urns import Urn
    from datahub.utilities.urns.error import InvalidUrnError

    try:
        parsed = Urn.from_string(urn)
    except InvalidUrnError as error:
        raise Invalid(f"{urn}: {error}") from error
    if parsed.entity_type != entity:
        message = "URN entity type does not match MCP entity type"
        raise Invalid(f"{message}. {parsed.entity_type} != {entity}")
    if len(quote(urn, safe="")) > _LONGEST_URN:
        raise Invalid("Error: cannot provide an URN longer than 512 bytes (when URL encoded)")
    if urn != urn.strip() or "␟" in urn:
        raise Invalid(f"Error: URN with blanks around it or with a ␟ in it: {urn}")


def normal(entity: str, aspect: str, body: Any) -> Any:
    """An aspect with what a server fills in; raises Invalid where the model does not know it."""
    if aspect not in aspects_of(entity):
        raise Invalid(f"Unknown aspect {aspect} for entity {entity}")
    if not isinstance(body, dict):
        raise Invalid(f"{aspect} is no record")
    foreign = next(_avro_names(body), None)
    if foreign is not None:
        raise Invalid(f'"{foreign}" is not a member type of union')
    from avro.errors import AvroException
    from datahub.emitter.serialization_helper import post_json_transform

    received = post_json_transform(body)
    try:
        record = _classes().ASPECT_NAME_MAP[aspect].from_obj(received)
        kept = record.to_obj()
        valid = record.validate()
    except (AvroException, AssertionError, LookupError, TypeError, ValueError) as error:
        raise Invalid(f"Failed to validate record {aspect}: {error!r}") from error
    if not valid:
        raise Invalid(f"Failed to validate record {aspect}")
    lost = next(_lost(received, kept, ""), None)
    if lost is not None:
        raise Invalid(f"Failed to validate record {aspect}: unrecognized field {lost}")
    return _sent(kept)


def _sent(body: Any) -> Any:
    from datahub.emitter.serialization_helper import pre_json_transform

    return pre_json_transform(body)


def _avro_names(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        for key, value in body.items():
            if key.startswith(_AVRO):
                yield key
            yield from _avro_names(value)
    elif isinstance(body, list):
        for value in body:
            yield from _avro_names(value)


def _lost(given: Any, kept: Any, path: str) -> Iterator[str]:
    """What the package's classes dropped without a word; nulls are no loss."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                yield from _lost(value, kept[key], f"{path}/{key}")
            elif value is not None:
                yield f"{path}/{key}"
    elif isinstance(given, list) and isinstance(kept, list):
        for number, (left, right) in enumerate(zip(given, kept, strict=True)):
            yield from _lost(left, right, f"{path}/{number}")
    elif given != kept:
        yield path
