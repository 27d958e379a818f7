"""Aspects of DataHub's entities, the writes that change them, and their form in `raw`.

An entity is a set of aspects, JSON objects by name. A file is a list of writes of aspects, which
replace, patch or delete them; a server stores the resulting aspects.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from lumos.errors import LumosError

Value = TypeVar("Value")
# The aspects of an entity by name.
Aspects: TypeAlias = dict[str, Any]
# Writes by aspect; an empty list means that the aspect must not be written.
Writes: TypeAlias = "dict[str, list[AspectWrite]]"

CATALOG: Final = "datahub"
CHANGE_PREFIX: Final = "urn:lumos:change:"
"""The URNs of changes in a file that name no entity, with a hash of the change."""
# An audit stamp without author and time, so that the same aspects give the same file.
STAMP: Final = {"time": 0, "actor": "urn:li:corpuser:unknown"}
# Deleting this aspect, or an aspect without a name, deletes the dataset.
_KEY: Final = "datasetKey"
_ERROR_PATH: Final = re.compile(r" - at `(?:key in )?\$(?P<path>.*)`\Z", re.DOTALL)
_PATH_SEPARATOR: Final = "\u241f"
# The keys of list members, for patches that do not name them.
_LIST_KEYS: Final[dict[str, dict[str, list[str]]]] = {
    "domains": {"domains": []},
    "editableSchemaMetadata": {"editableSchemaFieldInfo": ["fieldPath"]},
    "globalTags": {"tags": ["tag"]},
    "glossaryTerms": {"terms": ["urn"]},
    "ownership": {"owners": ["owner", "type", "typeUrn"]},
    "structuredProperties": {"properties": ["propertyUrn"]},
    "upstreamLineage": {"upstreams": ["dataset"]},
}


class AspectWrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One write of an aspect.

    `body` is the aspect as JSON. `extras` are the other keys of the change: its type, if it is not
    UPSERT, its author and its time.
    """

    aspect: str
    body: Any = None
    extras: dict[str, Any] = {}

    @property
    def removes(self) -> bool:
        return bool(self.extras.get("changeType") == "DELETE")

    @property
    def removes_entity(self) -> bool:
        return self.removes and self.aspect in ("", _KEY)

    @property
    def patches(self) -> bool:
        """Whether the body is a patch of the aspect."""
        return self.body is not None and self.extras.get("changeType") == "PATCH"

    @property
    def replaces(self) -> bool:
        return self.body is not None and self.extras.get("changeType") not in ("DELETE", "PATCH")


class Entity(NamedTuple):
    type: str
    urn: str


def entity_of(urn: str) -> Entity:
    """The entity of a URN, which contains its type."""
    return Entity(urn.split(":", 3)[2] if urn.count(":") > 2 else "", urn)


class ServerModel(Protocol):
    """The model of a server, which fills in defaults and creates some aspects itself."""

    def can_store(self, entity: Entity) -> bool:
        """Whether an entity can be written, and is not internal to the server."""

    def sendable(self, entity: Entity, aspects: Mapping[str, Any]) -> Aspects:
        """The part of the aspects that the server knows."""

    def normalize(self, entity: Entity, aspects: Mapping[str, Any]) -> Aspects:
        """Remove defaults, empty aspects, and aspects that the server creates itself."""

    def without_empty(self, aspects: Mapping[str, Any]) -> Aspects:
        """Remove empty aspects, because servers treat them as missing."""


class EntityStore(Protocol):
    """The writes of entities, in a file or read from a server."""

    def entities(self) -> Iterator[Entity]:
        """Yield all entities."""

    def writes(self, urn: str, aspect: str | None = None) -> list[AspectWrite]:
        """The writes of an entity, or of one of its aspects, in their order."""

    def replace(self, entity: Entity, writes: Sequence[AspectWrite]) -> bool:
        """Replace all writes of an entity; return whether anything changed."""

    def error(self, position: str, problem: str) -> LumosError:
        """The error for an invalid aspect."""


class InvalidAspect(LumosError):
    """An aspect with an unexpected value at `position`."""

    def __init__(self, position: str, problem: str) -> None:
        self.position = position
        self.problem = problem
        super().__init__(f"{position}: {problem}")


# The types of the fields that Lumos reads. All other fields are preserved without a check.


def _object(*required: str, **optional: Any) -> Any:
    """A type with required texts and optional fields."""
    fields: list[Any] = [(name, str) for name in required]
    fields += [(name, type, None) for name, type in optional.items()]
    return msgspec.defstruct("AspectFields", fields)


def _list(type: Any) -> Any:
    return list[type] | None


_TEXT: Final[Any] = str | None
_FLAG: Final[Any] = bool | None
_LABELS: Final = {
    "globalTags": _object(tags=_list(_object("tag"))) | None,
    "glossaryTerms": _object(terms=_list(_object("urn"))) | None,
}
_COMMON_FIELDS: Final = _object(
    name=_TEXT, title=_TEXT, displayName=_TEXT, description=_TEXT, definition=_TEXT, email=_TEXT,
    active=bool, parentDomain=_TEXT, parentNode=_TEXT, parentDataProduct=_TEXT,
    members=_list(str), customProperties=dict[str, str] | None,
)  # fmt: skip
_ASPECT_TYPES: Final[dict[str, Any]] = {
    **_LABELS,
    **dict.fromkeys(
        ("chartInfo", "corpGroupInfo", "corpUserInfo", "dashboardInfo", "dataFlowInfo",
         "dataJobInfo", "dataProductProperties", "domainProperties", "editableChartProperties",
         "editableDashboardProperties", "editableDataFlowProperties", "editableDataJobProperties",
         "editableDatasetProperties", "editableMlModelProperties", "glossaryNodeInfo",
         "glossaryTermInfo", "mlModelProperties", "queryProperties", "tagProperties"),
        _COMMON_FIELDS,
    ),
    "dataPlatformInstance": _object(instance=_TEXT),
    "datasetProperties": _object(
        name=_TEXT, description=_TEXT, customProperties=dict[str, str] | None,
        created=_object(time=int) | None, lastModified=_object(time=int) | None,
    ),
    "domains": _object(domains=_list(str)),
    "editableSchemaMetadata": _object(
        editableSchemaFieldInfo=_list(_object("fieldPath", description=_TEXT, **_LABELS))
    ),
    "glossaryRelatedTerms": _object(relatedTerms=_list(str)),
    "groupMembership": _object(groups=_list(str)),
    "ownership": _object(owners=_list(_object("owner", type=str, typeUrn=_TEXT))),
    "platformResourceInfo": _object(resourceType=str),
    "schemaMetadata": _object(
        fields=_list(
            _object(
                "fieldPath", description=_TEXT, nativeDataType=_TEXT, nullable=_FLAG,
                isPartOfKey=_FLAG, isPartitioningKey=_FLAG, jsonProps=_TEXT, **_LABELS,
            )
        )
    ),
    "status": _object(removed=_FLAG),
    "structuredProperties": _object(properties=_list(_object("propertyUrn", values=_list(Any)))),
    "upstreamLineage": _object(
        upstreams=_list(_object("dataset", type=str, properties=dict[str, str] | None)),
        fineGrainedLineages=_list(
            _object(
                upstreamType=str, upstreams=_list(str), downstreams=_list(str),
                transformOperation=_TEXT,
            )
        ),
    ),
    "viewProperties": _object(viewLogic=str, viewLanguage=str),
}  # fmt: skip


def read_writes(store: EntityStore, urn: str, aspect: str | None = None) -> list[AspectWrite]:
    """Read and check the writes of an entity."""
    try:
        return check_writes(store.writes(urn, aspect))
    except InvalidAspect as invalid:
        raise store.error(f"{urn} {invalid.position}", invalid.problem) from None


def check_writes(writes: Iterable[AspectWrite]) -> list[AspectWrite]:
    """Check the types in the bodies of writes."""
    checked = []
    for write in writes:
        shape = _ASPECT_TYPES.get(write.aspect)
        if shape is not None and write.replaces:
            try:
                msgspec.convert(write.body, shape)
            except msgspec.ValidationError as problem:
                text = str(problem)
                match = _ERROR_PATH.search(text)
                position = f"{write.aspect}{match['path'] if match else ''}"
                raise InvalidAspect(position, text[: match.start()] if match else text) from None
        checked.append(write)
    return checked


def aspects_after(writes: Iterable[AspectWrite]) -> Aspects:
    aspects: Aspects = {}
    for write in writes:
        if write.replaces:
            aspects[write.aspect] = write.body
        elif write.removes:
            aspects.pop(write.aspect, None)
        elif write.patches:
            before = aspects.get(write.aspect)
            body = apply_patch(write.aspect, before, write.body)
            with suppress(msgspec.ValidationError):
                msgspec.convert(body, _ASPECT_TYPES.get(write.aspect, Any))
                if body != before:
                    aspects[write.aspect] = body
    return aspects


# Changes of aspects that preserve all fields that Lumos does not read.


def read_list(items: Iterable[Any], read: Callable[[Any], Value | None]) -> tuple[Value, ...]:
    """The values of the items in a list, without those for which `read` returns None."""
    return tuple(value for item in items if (value := read(item)) is not None)


def update_list(
    items: Iterable[Any],
    read: Callable[[Any], Value | None],
    wanted: Iterable[Value],
    make: Callable[[Value], Any],
) -> list[Any]:
    """A list with an item for each wanted value: the existing one, or one that `make` returns.

    Items for which `read` returns None move to the end. Values that DataHub cannot store are
    omitted.
    """
    known: dict[Value, list[Any]] = {}
    others = []
    for item in items:
        if (value := read(item)) is None:
            others.append(item)
        else:
            known.setdefault(value, []).append(item)
    new_items = [
        (known[value].pop(0) if known.get(value) else make(value), value) for value in wanted
    ]
    return [*(item for item, value in new_items if read(item) == value), *others]


def update_aspect(
    aspects: Aspects, aspect: str, empty: Mapping[str, Any] | None = None, **keys: Any
) -> None:
    """Set keys of an aspect, and create the aspect if it is missing; None removes a key."""
    body = {**(aspects.get(aspect) or empty or {}), **keys}
    aspects[aspect] = {
        key: value for key, value in body.items() if value is not None or key not in keys
    }


# Writes in `raw`.


class _RawWrite(msgspec.Struct, omit_defaults=True):
    """A write in `raw`, where it is listed under its aspect."""

    body: Any = None
    extras: dict[str, Any] = msgspec.field(default_factory=dict, name="beside")


def find_unmodelled(
    writes: Sequence[AspectWrite],
    modelled: Aspects,
    *,
    normalize: Callable[[AspectWrite], AspectWrite],
) -> dict[str, Any]:
    """The writes of aspects that differ from the modelled ones, encoded for `raw`."""
    by_aspect: Writes = {aspect: [] for aspect in modelled}
    for write in writes:
        by_aspect.setdefault(write.aspect, []).append(write)
    unmodelled: Writes = {}
    for aspect, group in by_aspect.items():
        wanted = [AspectWrite(aspect=aspect, body=modelled.get(aspect))]
        if group == wanted:
            continue
        normal = [normalize(write) for write in group]
        if normal != [normalize(write) for write in wanted]:
            unmodelled[aspect] = normal
    return to_raw(unmodelled)


def writes_in_raw(raw: Mapping[str, Any]) -> Writes:
    """The writes of DataHub in the `raw` of an entry or item."""
    writes: Writes = {}
    record = raw.get(CATALOG, {})
    if not isinstance(record, dict):
        raise InvalidAspect(f"raw.{CATALOG}", f"Expected `object`, got {record!r}")
    for aspect, items in record.items():
        try:
            group = msgspec.convert(items, list[_RawWrite])
        except msgspec.ValidationError as problem:
            raise InvalidAspect(f"raw.{CATALOG}.{aspect}", str(problem)) from None
        writes[aspect] = check_writes(
            AspectWrite(aspect=aspect, body=item.body, extras=item.extras) for item in group
        )
    return writes


def to_raw(writes: Writes) -> dict[str, Any]:
    return {
        aspect: [
            msgspec.to_builtins(_RawWrite(body=each.body, extras=each.extras)) for each in group
        ]
        for aspect, group in writes.items()
    }


def raw_of_others(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {catalog: body for catalog, body in raw.items() if catalog != CATALOG}


def override_aspects(modelled: Aspects, raw: Writes) -> Aspects:
    """The modelled aspects, replaced by those in `raw`."""
    aspects = {aspect: body for aspect, body in modelled.items() if aspect not in raw}
    for group in raw.values():
        aspects.update(aspects_after(group))
    return aspects


def writes_for(aspects: Aspects, raw: Writes) -> list[AspectWrite]:
    """The writes that produce these aspects: those in `raw` if they still do, or else new ones."""
    writes: list[AspectWrite] = []
    for aspect in {**raw, **aspects}:
        group = raw.get(aspect, [])
        if aspects_after(group).get(aspect) == aspects.get(aspect):
            writes += group
        elif aspect in aspects:
            writes += _rewrite_last(group, aspect, aspects[aspect])
    return writes


def _rewrite_last(group: list[AspectWrite], aspect: str, body: Any) -> list[AspectWrite]:
    last = next((n for n in reversed(range(len(group))) if group[n].replaces), None)
    if last is None or any(each.removes or each.patches for each in group[last + 1 :]):
        return [*group, AspectWrite(aspect=aspect, body=body)]
    return [
        msgspec.structs.replace(each, body=body) if number == last else each
        for number, each in enumerate(group)
    ]


# Patches are applied as by a server: lists become maps by the keys of their members.


class _NotApplicable(Exception):
    """An operation on a value that does not exist."""


def apply_patch(aspect: str, body: Any, patch: Any) -> Any:
    """The body of an aspect after a patch; the same body if the patch cannot be applied."""
    try:
        operations = patch if isinstance(patch, list) else patch["patch"]
        keys_in_patch = {} if isinstance(patch, list) else patch.get("arrayPrimaryKeys") or {}
        mapped = _to_maps(
            copy.deepcopy(body or {}), keys := keys_in_patch or _LIST_KEYS.get(aspect, {})
        )
        for operation in operations:
            _apply(mapped, operation["op"].lower(), operation["path"], operation.get("value"))
        for name, fields in keys.items():
            if isinstance(members := mapped.get(name), dict):
                mapped[name] = _members(members, fields)
        return mapped
    except (_NotApplicable, AttributeError, KeyError, TypeError):
        return body


def _apply(mapped: dict[str, Any], operation: str, path: str, value: Any) -> None:
    """Apply one operation to a body whose lists are maps."""
    *parents, last = (
        part.replace("~1", "/").replace("~0", "~") for part in path.removeprefix("/").split("/")
    )
    target = mapped
    for part in parents:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            # A list without keys: only the server's own template knows them.
            raise _NotApplicable
    if operation == "remove":
        target.pop(last, None)
    elif operation in ("add", "replace"):
        target[last] = copy.deepcopy(value)
    else:
        raise _NotApplicable


def _to_maps(body: dict[str, Any], keys: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Convert lists of a body to nested maps by the keys of their members."""
    for name, fields in keys.items():
        members: dict[str, Any] = {}
        for member in body.get(name) or ():
            target = members
            for field in fields[:-1]:
                target = target.setdefault(key_in(member, field), {})
            target[key_in(member, fields[-1]) if fields else str(member)] = member
        if name in body:
            body[name] = members
    return body


def _members(members: Any, fields: Sequence[str]) -> list[Any]:
    """Convert nested maps by keys back to a list of members."""
    if not fields:
        return list(members.values()) if isinstance(members, dict) else [members]
    converted = []
    for key, nested in members.items():
        for member in [nested] if len(fields) == 1 else _members(nested, fields[1:]):
            if not isinstance(member, dict):
                raise _NotApplicable
            if key and _PATH_SEPARATOR not in fields[0]:
                member.setdefault(fields[0], key)
            converted.append(member)
    return converted


def key_in(member: Any, field: str) -> str:
    """The value of a key of a list member; the key may be nested."""
    value = member
    for part in field.split(_PATH_SEPARATOR):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
