"""Aspects of DataHub's entities, the writes that make them, and what of these is kept in `raw`.

An entity is a set of aspects, JSON objects by name. A file is a list of writes of aspects, which
replace, patch or delete them; a server holds what the writes leave behind.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from lumos.errors import LumosError

Value = TypeVar("Value")
# The aspects of an entity by name.
Aspects: TypeAlias = dict[str, Any]
# Writes by aspect; an empty list stands for an aspect that shall not be written at all.
Writes: TypeAlias = "dict[str, list[AspectWrite]]"

CATALOG: Final = "datahub"
# Who and when, where that is unknown; the same aspects shall give the same file.
STAMP: Final = {"time": 0, "actor": "urn:li:corpuser:unknown"}
# Deleting this aspect, or an aspect without a name, deletes the dataset.
_KEY: Final = "datasetKey"
_AT: Final = re.compile(r" - at `(?:key in )?\$(?P<path>.*)`\Z", re.DOTALL)
_NESTED: Final = "\u241f"
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

    `body` is the aspect as JSON; `extras` are the other keys of the change, such as a change type
    other than UPSERT, and when and by whom it was made.
    """

    aspect: str
    body: Any = None
    extras: dict[str, Any] = {}

    @property
    def removes(self) -> bool:
        """Whether it deletes the aspect."""
        return bool(self.extras.get("changeType") == "DELETE")

    @property
    def removes_entity(self) -> bool:
        """Whether it deletes the entity."""
        return self.removes and self.aspect in ("", _KEY)

    @property
    def patches(self) -> bool:
        """Whether the body is a patch of the aspect."""
        return self.body is not None and self.extras.get("changeType") == "PATCH"

    @property
    def replaces(self) -> bool:
        """Whether the aspect is the body from here on."""
        return self.body is not None and self.extras.get("changeType") not in ("DELETE", "PATCH")


class Entity(NamedTuple):
    """An entity's type and URN."""

    type: str
    urn: str


def entity_of(urn: str) -> Entity:
    """The entity of a URN, which contains its type."""
    return Entity(urn.split(":", 3)[2] if urn.count(":") > 2 else "", urn)


class ServerModel(Protocol):
    """What a server makes of aspects: it fills in defaults, and creates some aspects itself."""

    def holds(self, entity: Entity) -> bool:
        """Whether an entity can be written, and is not internal to the server."""

    def sendable(self, entity: Entity, aspects: Mapping[str, Any]) -> Aspects:
        """The part of some aspects that the server understands."""

    def normalize(self, entity: Entity, aspects: Mapping[str, Any]) -> Aspects:
        """Aspects without defaults, empty ones and those that the server creates itself."""

    def without_empty(self, aspects: Mapping[str, Any]) -> Aspects:
        """Aspects without empty ones, which read as missing."""


class EntityStore(Protocol):
    """The writes of entities, in a file or read from a server."""

    has_unnamed: bool
    """Whether it can hold changes that name no entity."""

    def entities(self) -> Iterator[Entity]:
        """All entities."""

    def writes(self, urn: str, aspect: str | None = None) -> list[AspectWrite]:
        """The writes of an entity, or of one of its aspects, in their order."""

    def replace(self, entity: Entity, writes: Sequence[AspectWrite]) -> bool:
        """Makes these all writes of an entity; returns whether anything had to change."""

    def unnamed(self) -> Mapping[str, Any]:
        """Changes that name no entity, by a name of our own."""

    def add_unnamed(self, name: str, change: Any) -> bool:
        """Adds such a change once; returns whether it was new."""

    def remove_unnamed(self, name: str) -> None:
        """Removes such a change."""

    def error(self, position: str, problem: str) -> LumosError:
        """The error for something that is not as DataHub writes it."""


class InvalidAspect(LumosError):
    """An aspect that is not as DataHub writes it; `position` leads to what is wrong in it."""

    def __init__(self, position: str, problem: str) -> None:
        self.position = position
        self.problem = problem
        super().__init__(f"{position}: {problem}")


# What is read of aspects must have these types. Anything else in them is kept, whatever it is.


def _object(*required: str, **optional: Any) -> Any:
    """The type of objects with these texts, and fields that may be missing."""
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
_DESCRIBED: Final = _object(
    name=_TEXT, title=_TEXT, displayName=_TEXT, description=_TEXT, definition=_TEXT, email=_TEXT,
    active=bool, parentDomain=_TEXT, parentNode=_TEXT, parentDataProduct=_TEXT,
    members=_list(str), customProperties=dict[str, str] | None,
)  # fmt: skip
_SHAPES: Final[dict[str, Any]] = {
    **_LABELS,
    **dict.fromkeys(
        ("chartInfo", "corpGroupInfo", "corpUserInfo", "dashboardInfo", "dataFlowInfo",
         "dataJobInfo", "dataProductProperties", "domainProperties", "editableChartProperties",
         "editableDashboardProperties", "editableDataFlowProperties", "editableDataJobProperties",
         "editableDatasetProperties", "editableMlModelProperties", "glossaryNodeInfo",
         "glossaryTermInfo", "mlModelProperties", "queryProperties", "tagProperties"),
        _DESCRIBED,
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
    """The writes of an entity, after checking them."""
    try:
        return check_writes(store.writes(urn, aspect))
    except InvalidAspect as invalid:
        raise store.error(f"{urn} {invalid.position}", invalid.problem) from None


def check_writes(writes: Iterable[AspectWrite]) -> list[AspectWrite]:
    """The writes, all of which have bodies of the types that are expected."""
    found = []
    for write in writes:
        shape = _SHAPES.get(write.aspect)
        if shape is not None and write.replaces:
            try:
                msgspec.convert(write.body, shape)
            except msgspec.ValidationError as problem:
                text = str(problem)
                at = _AT.search(text)
                position = f"{write.aspect}{at['path'] if at else ''}"
                raise InvalidAspect(position, text[: at.start()] if at else text) from None
        found.append(write)
    return found


def aspects_after(writes: Iterable[AspectWrite]) -> Aspects:
    """The aspects that writes leave behind."""
    aspects: Aspects = {}
    for write in writes:
        if write.replaces:
            aspects[write.aspect] = write.body
        elif write.removes:
            aspects.pop(write.aspect, None)
        elif write.patches:
            before = aspects.get(write.aspect)
            body = apply_patch(write.aspect, before, write.body)
            if body != before and _is_readable(write.aspect, body):
                aspects[write.aspect] = body
    return aspects


def _is_readable(aspect: str, body: Any) -> bool:
    try:
        msgspec.convert(body, _SHAPES.get(aspect, Any))
    except msgspec.ValidationError:
        return False
    return True


# Changing aspects without losing what is not read.


def read_list(items: Iterable[Any], read: Callable[[Any], Value | None]) -> tuple[Value, ...]:
    """The values in a list, as far as they are understood."""
    return tuple(value for item in items if (value := read(item)) is not None)


def update_list(
    items: Iterable[Any],
    read: Callable[[Any], Value | None],
    wanted: Iterable[Value],
    make: Callable[[Value], Any],
) -> list[Any]:
    """A list with these values: items that have them stay as they are.

    Items that are not understood stay at the end. Values that DataHub cannot hold are left out.
    """
    known: dict[Value, list[Any]] = {}
    others = []
    for item in items:
        if (value := read(item)) is None:
            others.append(item)
        else:
            known.setdefault(value, []).append(item)
    found = [(known[value].pop(0) if known.get(value) else make(value), value) for value in wanted]
    return [*(item for item, value in found if read(item) == value), *others]


def update_aspect(
    aspects: Aspects, aspect: str, empty: Mapping[str, Any] | None = None, **keys: Any
) -> None:
    """Sets keys of an aspect, which is created if missing; None removes a key."""
    body = {**(aspects.get(aspect) or empty or {}), **keys}
    aspects[aspect] = {
        key: value for key, value in body.items() if value is not None or key not in keys
    }


# What is kept in `raw`.


class _RawWrite(msgspec.Struct, omit_defaults=True):
    """A write of the aspect that it is listed under."""

    body: Any = None
    extras: dict[str, Any] = msgspec.field(default_factory=dict, name="beside")


def find_unmodelled(
    writes: Sequence[AspectWrite],
    made: Aspects,
    *,
    normalize: Callable[[AspectWrite], AspectWrite],
) -> dict[str, Any]:
    """The writes, as `raw`, of all aspects that are not exactly as Lumos would write them."""
    by_aspect: Writes = {aspect: [] for aspect in made}
    for write in writes:
        by_aspect.setdefault(write.aspect, []).append(write)
    found: Writes = {}
    for aspect, group in by_aspect.items():
        wanted = [AspectWrite(aspect=aspect, body=made.get(aspect))]
        if group == wanted:
            continue
        normal = [normalize(write) for write in group]
        if normal != [normalize(write) for write in wanted]:
            found[aspect] = normal
    return to_raw(found)


def writes_in_raw(raw: Mapping[str, Any]) -> Writes:
    """The writes that an entry or an item keeps for DataHub."""
    found: Writes = {}
    mine = raw.get(CATALOG, {})
    if not isinstance(mine, dict):
        raise InvalidAspect(f"raw.{CATALOG}", f"Expected `object`, got {mine!r}")
    for aspect, items in mine.items():
        try:
            group = msgspec.convert(items, list[_RawWrite])
        except msgspec.ValidationError as problem:
            raise InvalidAspect(f"raw.{CATALOG}.{aspect}", str(problem)) from None
        found[aspect] = check_writes(
            AspectWrite(aspect=aspect, body=item.body, extras=item.extras) for item in group
        )
    return found


def to_raw(writes: Writes) -> dict[str, Any]:
    """Writes as an entry or an item keeps them."""
    return {
        aspect: [
            msgspec.to_builtins(_RawWrite(body=each.body, extras=each.extras)) for each in group
        ]
        for aspect, group in writes.items()
    }


def raw_of_others(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept for other catalogs."""
    return {catalog: body for catalog, body in raw.items() if catalog != CATALOG}


def override_aspects(made: Aspects, kept: Writes) -> Aspects:
    """The aspects that Lumos would write, replaced by those that are kept in `raw`."""
    aspects = {aspect: body for aspect, body in made.items() if aspect not in kept}
    for group in kept.values():
        aspects.update(aspects_after(group))
    return aspects


def writes_for(aspects: Aspects, kept: Writes) -> list[AspectWrite]:
    """The writes that leave aspects behind: those that are kept where they still do."""
    writes: list[AspectWrite] = []
    for aspect in {**kept, **aspects}:
        group = kept.get(aspect, [])
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


# Patches are applied as a server does it: lists become maps by the keys of their members.


class _NotApplicable(Exception):
    """An operation on something that is not there."""


def apply_patch(aspect: str, body: Any, patch: Any) -> Any:
    """The body of an aspect after a patch; the same body if the patch cannot be applied."""
    try:
        operations = patch if isinstance(patch, list) else patch["patch"]
        given = {} if isinstance(patch, list) else patch.get("arrayPrimaryKeys") or {}
        mapped = _to_maps(copy.deepcopy(body or {}), keys := given or _LIST_KEYS.get(aspect, {}))
        for operation in operations:
            _apply(mapped, operation["op"].lower(), operation["path"], operation.get("value"))
        return _to_lists(mapped, keys)
    except (_NotApplicable, AttributeError, KeyError, TypeError):
        return body


def _apply(mapped: dict[str, Any], operation: str, path: str, value: Any) -> None:
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


def _to_lists(mapped: dict[str, Any], keys: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    for name, fields in keys.items():
        if isinstance(members := mapped.get(name), dict):
            mapped[name] = _members(members, fields)
    return mapped


def _members(members: Any, fields: Sequence[str]) -> list[Any]:
    if not fields:
        return list(members.values()) if isinstance(members, dict) else [members]
    found = []
    for key, inside in members.items():
        for member in [inside] if len(fields) == 1 else _members(inside, fields[1:]):
            if not isinstance(member, dict):
                raise _NotApplicable
            if key and _NESTED not in fields[0]:
                member.setdefault(fields[0], key)
            found.append(member)
    return found


def key_in(member: Any, field: str) -> str:
    """The key of a member in a list, which may be a nested one."""
    value = member
    for part in field.split(_NESTED):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
