"""A dataset as the state of an entity and back.

Reading gives an entry, and carries along what writing the entry would not make anew. Writing begins
with what is carried and changes only what says something else than the entry.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.interface import How
from lumos.catalogs.openmetadata import columns, labels, lineage, texts
from lumos.catalogs.openmetadata.columns import Column, ColumnAnnotations, Reading
from lumos.catalogs.openmetadata.kinds import CATALOG, canonical
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.lineage import Edges
from lumos.catalogs.openmetadata.names import EntityLocation, joined
from lumos.catalogs.openmetadata.states import (
    COLUMN_KEYS,
    COLUMNS,
    OWN_FIELDS,
    PRODUCTS,
    State,
    names_in,
)
from lumos.catalogs.openmetadata.texts import kept_text, shown_text
from lumos.catalogs.packed_properties import Packed, pack, restore, unpack
from lumos.catalogs.plain_merge import merge_objects
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Definition,
    Documentation,
    Governance,
    Lineage,
    Location,
    Ownership,
    Properties,
    Statistics,
)
from lumos.model.schema import Schema
from lumos.model.urn import Urn

_ENTITY: Final = "entity"
EXTENSION: Final = "extension"
DECLARED: Final = "declared"
"""How the custom properties that people gave a dataset are declared."""
_UNDERSTOOD: Final = frozenset({"name", "description", "tags", "children"})
NATIVE: Final = frozenset(
    {"schema", "lineage", "ownership", "governance", "documentation", "definition", "location",
     "statistics"}
)  # fmt: skip
URN: Final = "lumosUrn"
PARENT: Final = "lumosParent"
HIDDEN: Final = "lumosHidden"
EDGES: Final = "lumosEdges"
LINEAGE: Final = "lumosLineage"
_DISPLAYED: Final = "lumosDisplayed"
_MARKS: Final = frozenset({URN, PARENT, HIDDEN, EDGES, _DISPLAYED})
# The parts of an entry that people may edit where they are shown.
_EDITED: Final = frozenset(
    {"format", "schema", "ownership", "governance", "documentation", "properties"}
)
_FOREIGN: Final = "openmetadata."
_SAID_OF_EDGES: Final = "edges"
_PACKED: Final = re.compile(r"lumos(?P<name>[A-Z][a-z]+)(?P<part>[1-9]\d{0,5})?\Z", re.ASCII)
_NAMES: Final = frozenset(("name", "platform", "format", *ASPECTS, "timestamps", "raw"))
_CARRIAGE: Final = re.compile(r"lumos\.(?P<name>[a-z]+)(?:\.(?P<part>\d+))?\Z", re.ASCII)
_LONGEST: Final = 200_000
_FORMATS: Final = frozenset({"csv", "tsv", "json", "parquet", "avro"})
_LARGEST: Final = 2**53
_VIEW: Final = "View"
_KEY: Final = "PRIMARY_KEY"


Definitions: TypeAlias = Callable[[str, Iterable[str]], dict[str, Any]]
"""How some custom properties of a type are declared."""


class OpenMetadataEntity(NamedTuple):
    """The state that says what an entry says, and how each of its aspects is held in it."""

    state: State
    held: dict[str, How]


def is_parent_only(raw: Mapping[str, Any]) -> bool:
    """Whether an entity is there only because others are in it."""
    return PARENT in (raw.get("extension") or {})


class OpenMetadataEntries:
    """Turns entries into states and back."""

    def __init__(self, labels: OpenMetadataLabels, definitions: Definitions | None = None) -> None:
        self._labels = labels
        self._definitions = definitions

    def read(
        self, urn: str, place: EntityLocation, state: State, edges: Edges, *, deleted: bool
    ) -> CatalogEntry:
        """The dataset that a state and the edges that lead to it say."""
        extension = state.get("extension", {})
        exact = unpack(_as_carriage(extension)).exact
        shown = self._shown(urn, state)
        named = exact.pop("name", None)
        told = exact.pop("lineage", None)
        packed = exact.pop("raw", None)
        entry = restore(
            shown,
            exact,
            native=_EDITED,
            as_shown=lambda claimed: self._shown(urn, self._native(claimed, place, like=state)),
        )
        if named is not None and extension.get(_DISPLAYED, "") == state.get("displayName", ""):
            entry = msgspec.structs.replace(entry, name=named)
        marks = lineage.marked(extension.get(EDGES))
        merged = lineage.merged(told, edges, marks)
        carried = self._carried(entry, place, state, packed)
        carried = self._with_declared(carried, place, extension)
        return msgspec.structs.replace(
            entry,
            lineage=merged,
            deleted=deleted,
            raw=_with_edges(carried, edges, marks, merged),
        )

    def render(
        self,
        entry: CatalogEntry,
        place: EntityLocation,
        *,
        there: State | None,
        declared: Collection[str] = (),
    ) -> OpenMetadataEntity:
        """The state that says exactly what the entry says.

        `there` is the state that the entity is in, if it is there: what only people set stays.
        `declared` are the custom properties that people have made for its type.
        """
        state = self._native(entry, place, like=there)
        carried = usable(entry.raw)
        if carried:
            state = over(
                state,
                carried,
                home=place.home,
                said=said_in,
                read=lambda changed: self._shown(entry.urn, changed),
                product=self._labels.product,
            )
        before = there or {}
        self._write_name(state, entry, there)
        extension = self._foreign(entry.properties or {}, before, declared, carried)
        if extension:
            state["extension"] = extension
        packed = self._packed(entry, place, state)
        extension |= {_as_property(key): kept_text(text) for key, text in packed.properties.items()}
        if "lumos.name" in packed.properties and "displayName" in state:
            extension[_DISPLAYED] = state["displayName"]
        # These two are told once the entity itself is written.
        kept = (EDGES, HIDDEN) if entry.deleted else (EDGES,)
        known = before.get("extension", {})
        extension |= {key: known[key] for key in kept if key in known}
        if place.is_shortened:
            extension[URN] = entry.urn
        if extension:
            state["extension"] = extension
        return OpenMetadataEntity(state, packed.held)

    def _packed(self, entry: CatalogEntry, place: EntityLocation, state: State) -> Packed:
        """What of an entry a state does not say."""
        shown = self._shown(entry.urn, state)
        left = left_over(state, self._native(shown, place))
        # The query of a view is always carried, since any patch by others wipes what is shown.
        shown = msgspec.structs.replace(shown, raw={CATALOG: left} if left else {}, definition=None)
        packed = pack(entry, shown, longest=_LONGEST)
        held = dict(packed.held)
        if entry.lineage is not None:
            held["lineage"] = "partly"
        if "schemaDefinition" in state and entry.definition is not None:
            held["definition"] = "partly"
        return Packed(packed.properties, held)

    def _native(
        self, entry: CatalogEntry, place: EntityLocation, *, like: State | None = None
    ) -> State:
        """What OpenMetadata has a place for; `like` says what is shown where not all can be."""
        state: State = {}
        documentation, governance = entry.documentation, entry.governance
        if documentation is not None and (text := texts.storable(documentation.description or "")):
            state["description"] = text
        if documentation is not None and documentation.domain:
            state["domains"] = [self._labels.domain(documentation.domain)]
        if governance is not None and (tags := self._labelled(governance.tags, governance.terms)):
            state["tags"] = tags
        if entry.ownership is not None and entry.ownership.owners:
            state["owners"] = self._owners(entry.ownership, (like or {}).get("owners", ()))
        if entry.schema is not None and entry.schema.fields and place.home != "topic":
            state[COLUMNS] = columns.written(entry.schema, self._labelled)
        match place.home:
            case "table":
                state |= _table_facts(entry)
            case "container":
                state |= _container_facts(entry)
            case _:
                # OpenMetadata knows no topic without a number of partitions.
                state["partitions"] = 1
        return state

    def _labelled(self, tags: Iterable[str], terms: Iterable[str]) -> list[dict[str, Any]]:
        found = [
            *self._labels.tags(dict.fromkeys(tags)),
            *(self._labels.term(name) for name in dict.fromkeys(terms)),
        ]
        # A tag and a term of one qualified name are one label to the server, the tag.
        distinct = {label["tagFQN"]: label for label in reversed(found)}
        return sorted(distinct.values(), key=lambda label: (label["source"], label["tagFQN"]))

    def _owners(
        self, ownership: Ownership, there: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        teams = {each["name"] for each in there if each["type"] == "team"}
        found = map(self._labels.owner, labels.shown_owners(ownership.owners, teams))
        return list({(each["type"], each["name"]): each for each in found}.values())

    @staticmethod
    def _write_name(state: State, entry: CatalogEntry, there: State | None) -> None:
        """The name that people see is theirs once the entity is there; a bot may not change it."""
        if there is not None:
            if "displayName" in there:
                state["displayName"] = there["displayName"]
        elif (name := shown_text(entry.name)) != _plain_name(entry.urn) and name:
            state["displayName"] = name

    @staticmethod
    def _foreign(
        properties: Properties,
        before: State,
        declared: Collection[str],
        carried: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Custom properties of people's own: those that are said, and those that are no text."""
        kept = {
            key: value
            for key, value in before.get("extension", {}).items()
            if not isinstance(value, str)
        }
        said = {
            key.removeprefix(_FOREIGN): text
            for key, text in properties.items()
            if key.startswith(_FOREIGN) and text and shown_text(text) == text
        }
        # What is there was declared, be it since we asked.
        known = {key for key in (*declared, *before.get("extension", {})) if not is_ours(key)}
        others = carried.get(EXTENSION, {})
        return kept | {key: value for key, value in {**others, **said}.items() if key in known}

    def _with_declared(
        self, carried: dict[str, Any], place: EntityLocation, extension: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What is carried, with how people's own properties are declared."""
        mine = carried.get(CATALOG, {})
        own = [key for key in extension if not is_ours(key)]
        if not own or self._definitions is None or not isinstance(mine, dict) or DECLARED in mine:
            return carried
        declared = self._definitions(place.home, own)
        return {**carried, CATALOG: {**mine, DECLARED: declared}} if declared else carried

    def _shown(self, urn: str, state: State) -> CatalogEntry:
        """The entry that OpenMetadata shows."""
        parsed = Urn.parse(urn)
        own = {
            f"{_FOREIGN}{key}": value
            for key, value in state.get("extension", {}).items()
            if isinstance(value, str) and not is_ours(key)
        }
        said = said_in(state.get("tags", ()))
        formats = state.get("fileFormats") or [state.get("fileFormat")]
        schema = self._schema(state)
        return CatalogEntry(
            urn=urn,
            name=state.get("displayName") or _plain_name(urn),
            platform=parsed.platform,
            format=formats[0] if len(formats) == 1 else None,
            schema=schema,
            ownership=_ownership(state),
            governance=Governance(tags=said.tags, terms=said.terms) if any(said) else None,
            documentation=_documentation(state),
            properties=own or None,
            definition=Definition(sql=state["schemaDefinition"], dialect=parsed.platform)
            if "schemaDefinition" in state
            else None,
            location=Location(uri=state["fullPath"]) if "fullPath" in state else None,
            statistics=_statistics(state),
        )

    @staticmethod
    def _schema(state: State) -> Schema | None:
        if COLUMNS not in state:
            return None
        keys = [
            name
            for constraint in state.get("tableConstraints", ())
            if constraint.get("constraintType") == _KEY
            for name in constraint.get("columns") or ()
        ]
        return columns.read(state[COLUMNS], said_in, keys)

    def _carried(
        self, entry: CatalogEntry, place: EntityLocation, state: State, packed: Any
    ) -> dict[str, Any]:
        now = left_over(state, self._native(self._shown(entry.urn, state), place))
        if packed is None:
            return {CATALOG: now} if now else {}
        mine = packed.get(CATALOG, {})
        claimed = msgspec.structs.replace(entry, raw=packed)
        made = self.render(claimed, place, there=state).state
        then = left_over(made, self._native(self._shown(entry.urn, made), place))
        if then == now:
            return dict(packed)
        others = {key: value for key, value in packed.items() if key != CATALOG}
        merged = merge_objects(CATALOG, then, now, mine, _untold)
        return {**others, CATALOG: merged} if merged else others


def declared_in(entry: CatalogEntry) -> dict[str, Any]:
    """How people's own properties of a dataset were declared where it comes from."""
    mine = entry.raw.get(CATALOG)
    declared = mine.get(DECLARED) if isinstance(mine, dict) else None
    if not isinstance(declared, dict):
        return {}
    return {
        name: told
        for name, told in declared.items()
        if isinstance(told, dict) and isinstance(told.get("type"), str)
    }


def said_of_edges(entry: CatalogEntry) -> dict[str, Any]:
    """What is said of edges that lead to a dataset beyond what Lumos would write by itself."""
    mine = entry.raw.get(CATALOG)
    said: Any = mine.get(_SAID_OF_EDGES) if isinstance(mine, dict) else None
    return dict(said) if lineage.is_said(said) else {}


def with_canonical_edges(entry: CatalogEntry) -> CatalogEntry:
    """An entry whose edges name entities as snapshots do since format 1.1."""
    said = said_of_edges(entry)
    named = {canonical(name): each for name, each in said.items()}
    if named.keys() == said.keys():
        return entry
    mine = {**entry.raw[CATALOG], _SAID_OF_EDGES: named}
    return msgspec.structs.replace(entry, raw={**entry.raw, CATALOG: mine})


def _with_edges(
    carried: dict[str, Any], edges: Edges, marks: lineage.Marks, told: Lineage | None
) -> dict[str, Any]:
    mine = carried.get(CATALOG)
    before = mine.get(_SAID_OF_EDGES) if isinstance(mine, dict) else None
    if before is not None and not lineage.is_said(before):
        return carried
    upstream = {edge.urn for edge in told.upstream} if told is not None else set()
    said = lineage.said_beside(before or {}, edges, marks, upstream)
    if said == (before or {}):
        return carried
    others = {key: value for key, value in (mine or {}).items() if key != _SAID_OF_EDGES}
    mine = {**others, _SAID_OF_EDGES: said} if said else others
    rest = {key: value for key, value in carried.items() if key != CATALOG}
    return {**rest, CATALOG: mine} if mine else rest


def said_in(found: Iterable[Mapping[str, Any]]) -> ColumnAnnotations:
    """The labels of an entity or a column, by their names in Lumos."""
    tags, terms = set(), set()
    for label in found:
        if (tag := labels.tag_of(label)) is not None:
            tags.add(tag)
        elif (term := labels.term_of(label)) is not None:
            terms.add(term)
    return ColumnAnnotations(tuple(sorted(tags)), tuple(sorted(terms)))


def _untold(path: str, theirs: Any, ours: Any) -> None:
    """Conflicts in what is carried are told by the merge of the whole entry."""


def _plain_name(urn: str) -> str:
    return Urn.parse(urn).name


def _ownership(state: State) -> Ownership | None:
    found = sorted(
        map(labels.owner_of, state.get("owners", ())), key=lambda owner: (owner.kind, owner.name)
    )
    return Ownership(owners=tuple(found)) if found else None


def _documentation(state: State) -> Documentation | None:
    domains = state.get("domains", ())
    if "description" not in state and not domains:
        return None
    return Documentation(
        description=state.get("description"),
        domain=labels.domain_of(domains[0]) if domains else None,
    )


def _statistics(state: State) -> Statistics | None:
    if "size" not in state and "numberOfObjects" not in state:
        return None
    return Statistics(
        file_count=int(state.get("numberOfObjects", 0)), total_size_bytes=int(state.get("size", 0))
    )


def _table_facts(entry: CatalogEntry) -> State:
    facts: State = {}
    if entry.definition is not None and entry.definition.sql:
        facts |= {"schemaDefinition": shown_text(entry.definition.sql), "tableType": _VIEW}
    if entry.format in _FORMATS:
        facts["fileFormat"] = entry.format
    if entry.schema is not None and (keys := columns.key_columns(entry.schema)):
        facts["tableConstraints"] = [{"constraintType": _KEY, "columns": keys}]
    return facts


def _container_facts(entry: CatalogEntry) -> State:
    facts: State = {}
    if entry.format in _FORMATS:
        facts["fileFormats"] = [entry.format]
    if entry.location is not None and entry.location.uri:
        facts["fullPath"] = shown_text(entry.location.uri)
    measured = entry.statistics
    if measured is not None:
        for key, number in (
            ("size", measured.total_size_bytes), ("numberOfObjects", measured.file_count)
        ):  # fmt: skip
            if 0 < number <= _LARGEST:
                facts[key] = number
    return facts


def is_ours(key: str) -> bool:
    """Whether a custom property is one of Lumos's own."""
    match = _PACKED.match(key)
    return key in _MARKS or (match is not None and match["name"].lower() in _NAMES)


def _as_property(key: str) -> str:
    """The property of OpenMetadata for a key of the carriage: `lumos.schema.2` is lumosSchema2."""
    match = _CARRIAGE.match(key)
    assert match is not None, "nothing else is packed"
    return f"lumos{match['name'].capitalize()}{match['part'] or ''}"


def _as_carriage(extension: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for key, text in extension.items():
        if (match := _PACKED.match(key)) and is_ours(key) and key not in _MARKS:
            part = f".{match['part']}" if match["part"] else ""
            found[f"lumos.{match['name'].lower()}{part}"] = text
    return found


# What has to be carried because writing an entry would not produce it


def left_over(state: State, made: State) -> dict[str, Any]:
    """What a state says beyond one that was made of the same entry; None is for what it lacks."""
    fields = {field for each in OWN_FIELDS.values() for field in each}
    entity = {
        key: state.get(key)
        for key in sorted(fields & (state.keys() | made.keys()))
        if state.get(key) != made.get(key)
    }
    if products := sorted(names_in(state, PRODUCTS)):
        entity[PRODUCTS] = products
    inside = dict(_columns_left(state.get(COLUMNS, []), made.get(COLUMNS, []), ()))
    extension = {
        key: value
        for key, value in state.get(EXTENSION, {}).items()
        if not isinstance(value, str) and not key.startswith("lumos")
    }
    found = {
        _ENTITY: entity,
        COLUMNS: inside,
        EXTENSION: extension,
    }
    return {key: value for key, value in found.items() if value}


def usable(carried: Mapping[str, Any]) -> dict[str, Any]:
    """What is carried for OpenMetadata, as far as it is in the form that reading gives it."""
    mine = carried.get(CATALOG)
    if not isinstance(mine, dict):
        return {}
    found = {key: mine.get(key) for key in (_ENTITY, COLUMNS, EXTENSION)}
    return {key: value for key, value in found.items() if isinstance(value, dict) and value}


def over(
    state: State,
    carried: Mapping[str, Any],
    *,
    home: str,
    said: Reading,
    read: Callable[[State], CatalogEntry],
    product: Callable[[str], dict[str, Any] | None],
) -> State:
    """A state with what is carried for it, as far as it still reads alike."""
    shown = read(state)
    for key, value in carried.get(_ENTITY, {}).items():
        if key == PRODUCTS and isinstance(value, list):
            there = [found for fqn in value if isinstance(fqn, str) and (found := product(fqn))]
            state = _with(state, PRODUCTS, there or None)
        if key not in OWN_FIELDS[home]:
            continue
        changed = _with(state, key, value)
        if read(changed) == shown:
            state = changed
    inside = carried.get(COLUMNS)
    if not inside or COLUMNS not in state:
        return state
    return {**state, COLUMNS: [_column_over(each, inside, said) for each in state[COLUMNS]]}


def _column_over(column: Column, carried: Mapping[str, Any], said: Reading) -> Column:
    changed = _column_with(column, carried, ())
    if changed == column or columns.read([changed], said) != columns.read([column], said):
        return column
    return changed


def _column_with(column: Column, carried: Mapping[str, Any], above: tuple[str, ...]) -> Column:
    path = (*above, column["name"])
    own = carried.get(joined(*path))
    for key, value in own.items() if isinstance(own, dict) else ():
        if key in COLUMN_KEYS and key not in _UNDERSTOOD:
            column = _with(column, key, value)
    if "children" in column:
        children = [_column_with(child, carried, path) for child in column["children"]]
        column = {**column, "children": children}
    return column


def _with(holder: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    rest = {each: held for each, held in holder.items() if each != key}
    return rest if value is None else {**rest, key: value}


def _columns_left(
    there: list[Column], made: list[Column], above: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    by_name = {column["name"]: column for column in made}
    for column in there:
        path = (*above, column["name"])
        other = by_name.get(column["name"], {})
        left = {
            key: column.get(key)
            for key in COLUMN_KEYS
            if key not in _UNDERSTOOD and column.get(key) != other.get(key)
        }
        if left:
            yield joined(*path), left
        yield from _columns_left(column.get("children", []), other.get("children", []), path)
