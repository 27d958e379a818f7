"""Aspects in one normal form, whatever a server filled in: what goes without saying is left out.

A server may add each default of the model or none of them, and it makes some aspects by itself. An
aspect that says nothing reads as one that is not there, since none can be taken back by proposals.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.platforms.datahub.package import classes
from lumos.platforms.datahub.patches import EMPTY, STAMPS
from lumos.platforms.datahub.server import key_aspect
from lumos.platforms.datahub_model.statements import Entity

_AVRO: Final = "com.linkedin.pegasus2avro."
_SENT: Final = "com.linkedin."
_BROWSE: Final = "browsePathsV2"
_INSTANCE: Final = "dataPlatformInstance"
# What must not leave a server.
_SECRET: Final = frozenset({"corpUserCredentials"})

Normal: TypeAlias = Callable[[Any], Any]


class Model:
    """DataHub's model as its package ships it, and what a server was seen to know beyond that."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def types(self) -> frozenset[str]:
        """The types of entities."""
        return frozenset(classes().KEY_ASPECTS)

    def takes(self, entity: Entity, aspect: str) -> bool:
        """Whether an entity can have an aspect that stays until it is replaced."""
        return aspect in _aspects(entity.type) or (entity.type, aspect) in self._seen

    def read(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """What a server told of an entity, which it therefore takes."""
        known = _aspects(entity.type)
        self._seen.update((entity.type, name) for name in aspects if name not in known)
        return self.kept(entity, aspects)

    def kept(self, entity: Entity, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """Aspects in their normal form."""
        key = key_aspect(entity.type)
        found = {}
        for name, body in aspects.items():
            if name == key or name in _SECRET:
                continue
            normal = _normal_of(name)(body)
            if not _says_nothing(name, normal) and not _is_made_by_server(entity, name, normal):
                found[name] = normal
        return found

    def told(self, aspects: Mapping[str, Any]) -> dict[str, Any]:
        """Aspects without those that say nothing."""
        return {name: body for name, body in aspects.items() if not _says_nothing(name, body)}


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
        return "instance" not in body
    if aspect == _BROWSE:
        path = [tuple(step.items()) for step in body.get("path", ())]
        return path in ([(("id", "Default"),)], _path_of(entity.urn))
    return False


def _path_of(urn: str) -> list[tuple[tuple[str, str], ...]]:
    """Where a server shows a dataset that nobody gave a place: under the parts of its name."""
    name = urn.partition(",")[2].rpartition(",")[0]
    *parents, _ = name.split("/" if "/" in name else ".")
    return [(("id", part),) for part in parents]


@cache
def _normal_of(aspect: str) -> Normal:
    found = classes().ASPECT_NAME_MAP.get(aspect)
    return _as_it_is if found is None else _Schemas().normal(found.RECORD_SCHEMA) or _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


class _Field(NamedTuple):
    """A field of a record; one that may be missing may be empty as well, if it holds many."""

    normal: Normal | None = None
    has_default: bool = False
    default: Any = None
    may_be_empty: bool = False


_UNKNOWN: Final = _Field()


class _Schemas:
    """Makes functions of schemas, each record once, since records may hold themselves."""

    def __init__(self) -> None:
        self._records: dict[str, Normal] = {}

    def normal(self, schema: Any) -> Normal | None:
        """What brings values of a schema into their normal form; nothing where they have one."""
        match schema.type:
            case "record" | "error":
                return self._record(schema)
            case "array":
                return _each_item(self.normal(schema.items))
            case "map":
                return _each_value(self.normal(schema.values))
            case "union":
                return self._union(schema)
        return None

    def _record(self, schema: Any) -> Normal:
        if (known := self._records.get(schema.fullname)) is not None:
            return known
        fields: dict[str, _Field] = {}

        def normal(value: Any) -> Any:
            return _without_defaults(value, fields)

        self._records[schema.fullname] = normal
        for field in schema.fields:
            inner = self.normal(field.type)
            default = field.default if field.has_default else None
            if field.has_default and inner is not None and default is not None:
                default = inner(default)
            may_be_empty = default is None and _holds_many(field.type)
            fields[field.name] = _Field(inner, field.has_default, default, may_be_empty)
        return normal

    def _union(self, schema: Any) -> Normal | None:
        branches = [each for each in schema.schemas if each.type != "null"]
        if len(branches) == 1:
            return _unless_nothing(self.normal(branches[0]))
        named = {
            f"{_SENT}{each.fullname[len(_AVRO) :]}": inner
            for each in branches
            if each.type == "record" and (inner := self.normal(each)) is not None
        }
        return _of_branch(named) if named else None


def _without_defaults(value: Any, fields: Mapping[str, _Field]) -> Any:
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        field = fields.get(name, _UNKNOWN)
        normal = each if field.normal is None or each is None else field.normal(each)
        is_said = normal != field.default and (normal or not field.may_be_empty)
        if is_said or not field.has_default:
            found[name] = normal
    return found


def _holds_many(schema: Any) -> bool:
    branches = schema.schemas if schema.type == "union" else [schema]
    return all(each.type in ("array", "map", "null") for each in branches)


def _each_item(inner: Normal | None) -> Normal | None:
    if inner is None:
        return None
    return lambda value: [inner(each) for each in value] if isinstance(value, list) else value


def _each_value(inner: Normal | None) -> Normal | None:
    if inner is None:
        return None
    return lambda value: (
        {name: inner(each) for name, each in value.items()} if isinstance(value, dict) else value
    )


def _unless_nothing(inner: Normal | None) -> Normal | None:
    if inner is None:
        return None
    return lambda value: None if value is None else inner(value)


def _of_branch(named: Mapping[str, Normal]) -> Normal:
    def normal(value: Any) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            return value
        ((name, inside),) = value.items()
        return {name: named[name](inside)} if name in named else value

    return normal
