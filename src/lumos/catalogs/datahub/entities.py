"""Encodes the kinds of entities that both DataHub and Lumos have.

`lumos:task:airflow/nightly/load` is `urn:li:dataJob:(urn:li:dataFlow:(airflow,nightly,PROD),load)`.
An entity of another type, or with a DataHub URN that cannot be converted, has its DataHub URN in
Lumos too, and all of its aspects in `raw`.
"""

import re
from collections.abc import Mapping
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub import common_aspects as common
from lumos.catalogs.datahub.aspects import (
    CATALOG,
    CHANGE_PREFIX,
    STAMP,
    Aspects,
    Entity,
    ServerModel,
    entity_of,
    read_list,
    update_aspect,
    update_list,
    writes_in_raw,
)
from lumos.catalogs.datahub.codec import Codec, RenderedItem, read_unpacked_properties
from lumos.catalogs.datahub.common_aspects import TAGS, TERMS, read_labels, write_labels
from lumos.catalogs.datahub.names import ENVIRONMENTS, Naming, decode_name, encode_name, entity_name
from lumos.catalogs.datahub.names import entity_urn as native_urn_of
from lumos.catalogs.nearest_kinds import nearest_urn, original_urn, shared_kind
from lumos.model.catalog import (
    CatalogEntity,
    GlossaryTerm,
    Group,
    User,
    entity_id,
    entity_urn,
    kind_in_urn,
)
from lumos.model.dataset import Owner, Ownership

_NATIVE: Final = "urn:li:"
_PLACEHOLDER: Final = re.compile(r"\\\{(\d)\\\}")
_STAMPS: Final = {"created": STAMP, "lastModified": STAMP}


class _Relation(NamedTuple):
    """A list of references in an aspect; newer sources write the list `edges` instead of `list`.

    `target` is the kind of the referenced entities, or `dataset`. If members are objects, `member`
    is the key of their URN. `derived` is a key that DataHub derives from the list. `empty` is the
    body of an empty aspect.
    """

    name: str
    target: str
    aspect: str
    list: str
    edges: str = ""
    member: str = ""
    derived: str = ""
    empty: Mapping[str, Any] = MappingProxyType({})


class _EntityKind(NamedTuple):
    """A kind of entities in DataHub: its URN, and the keys of its properties aspect.

    `urn` has the parts of the id in braces; the last one may be an environment, which is omitted
    if it is PROD. `name_key` is the key of the display name. If the aspect requires a name,
    `title_part` is the index of the id part that serves as one. `edited` is the aspect with the
    description that users entered.
    """

    kind: str
    urn: str
    aspect: str
    name_key: str = "name"
    title_part: int | None = None
    description: str = "description"
    parent: tuple[str, str] | None = None
    edited: str = ""
    has_custom_properties: bool = True
    has_environment: bool = False
    annotations: frozenset[str] = frozenset({"ownership", "globalTags", "glossaryTerms", "domains"})
    required: Mapping[str, Any] = MappingProxyType({})
    relations: tuple[_Relation, ...] = ()

    @property
    def type(self) -> str:
        return entity_of(self.urn).type


_EDGE_URN_KEY: Final = "destinationUrn"
_IO: Final = "dataJobInputOutput"
_NO_IO: Final[dict[str, Any]] = {"inputDatasets": [], "outputDatasets": []}
_REQUIRED_OF_CHARTS: Final = {"description": "", "lastModified": _STAMPS}
_DOMAINS: Final = _Relation("domain", "domain", "domains", "domains", derived="domainAssociations")
_KINDS: Final = (
    _EntityKind(
        "tag", "urn:li:tag:{0}", "tagProperties", title_part=0, has_custom_properties=False,
        annotations=frozenset({"ownership"}),
    ),
    _EntityKind(
        "domain", "urn:li:domain:{0}", "domainProperties", title_part=0,
        parent=("parentDomain", "domain"), annotations=frozenset({"ownership"}),
    ),
    _EntityKind(
        "data_product", "urn:li:dataProduct:{0}", "dataProductProperties",
        parent=("parentDataProduct", "data_product"),
        relations=(
            _Relation(
                "datasets", "dataset", "dataProductProperties", "assets", member=_EDGE_URN_KEY
            ),
        ),
    ),
    _EntityKind(
        "term_group", "urn:li:glossaryNode:{0}", "glossaryNodeInfo", description="definition",
        parent=("parentNode", "term_group"), required={"definition": ""},
        annotations=frozenset({"ownership", "globalTags", "domains"}),
    ),
    _EntityKind(
        "pipeline", "urn:li:dataFlow:({0},{1},{2})", "dataFlowInfo", title_part=1,
        edited="editableDataFlowProperties", has_environment=True,
    ),
    _EntityKind(
        "task", "urn:li:dataJob:(urn:li:dataFlow:({0},{1},{3}),{2})", "dataJobInfo", title_part=2,
        edited="editableDataJobProperties", has_environment=True,
        required={"type": {"string": "COMMAND"}},
        relations=(
            _Relation("inputs", "dataset", _IO, "inputDatasets", "inputDatasetEdges", empty=_NO_IO),
            _Relation(
                "outputs", "dataset", _IO, "outputDatasets", "outputDatasetEdges", empty=_NO_IO
            ),
            _Relation("upstream", "task", _IO, "inputDatajobs", "inputDatajobEdges", empty=_NO_IO),
        ),
    ),
    _EntityKind(
        "dashboard", "urn:li:dashboard:({0},{1})", "dashboardInfo", name_key="title", title_part=1,
        edited="editableDashboardProperties", required=_REQUIRED_OF_CHARTS,
        relations=(
            _Relation("charts", "chart", "dashboardInfo", "charts", "chartEdges"),
            _Relation("datasets", "dataset", "dashboardInfo", "datasets", "datasetEdges"),
        ),
    ),
    _EntityKind(
        "chart", "urn:li:chart:({0},{1})", "chartInfo", name_key="title", title_part=1,
        edited="editableChartProperties", required=_REQUIRED_OF_CHARTS,
        relations=(
            _Relation("datasets", "dataset", "chartInfo", "inputs", "inputEdges", member="string"),
        ),
    ),
    _EntityKind(
        "ml_model", "urn:li:mlModel:(urn:li:dataPlatform:{0},{1},{2})", "mlModelProperties",
        edited="editableMlModelProperties", has_environment=True,
    ),
    _EntityKind(
        "query", "urn:li:query:{0}", "queryProperties", annotations=frozenset(),
        required={"statement": {"value": "", "language": "SQL"}, "source": "MANUAL", **_STAMPS},
        relations=(_Relation("datasets", "dataset", "querySubjects", "subjects", member="entity"),),
    ),
)  # fmt: skip
_BY_KIND: Final = {each.kind: each for each in _KINDS}
_BY_TYPE: Final = {each.type: each for each in _KINDS}
# Kinds that can store any other entity exactly. A task needs a pipeline.
_EXACT_KINDS: Final = frozenset(
    each.kind for each in _KINDS if each.has_custom_properties and each.kind != "task"
)
_DEFAULT_ENVIRONMENT: Final = "PROD"


def canonical_urn(urn: str) -> str:
    """The URN of an entity in Lumos, given its URN in Lumos or in DataHub."""
    native = native_entity(urn)
    return urn if native is None else _lumos_urn(native)


def native_entity(urn: str) -> Entity | None:
    """The DataHub entity with a URN, or None if DataHub cannot have it.

    An entity of another catalog is stored as an entity of the nearest kind.
    """
    if urn.startswith((_NATIVE, CHANGE_PREFIX)):
        return entity_of(urn)
    if entity_id(urn) is None:
        urn = nearest_urn(urn, _EXACT_KINDS) or urn
    parts, kind = entity_id(urn), _BY_KIND.get(kind_in_urn(urn))
    if parts is None or kind is None:
        return None
    native_urn = _native_urn(kind, parts)
    return None if native_urn is None else Entity(kind.type, native_urn)


def _native_urn(kind: _EntityKind, parts: tuple[str, ...]) -> str | None:
    count = kind.urn.count("{")
    if count == 1:
        parts = ("/".join(parts),)
    elif kind.has_environment and len(parts) == count - 1:
        parts = (*parts, _DEFAULT_ENVIRONMENT)
    if len(parts) != count or not all(parts):
        return None
    if kind.kind == "ml_model" and parts[-1] not in ENVIRONMENTS:
        return None
    return kind.urn.format(*map(encode_name, parts))


def _lumos_urn(native: Entity) -> str:
    """The URN of an entity in Lumos; DataHub's URN if it could not be converted back."""
    kind = _BY_TYPE.get(native.type)
    match = None if kind is None else _pattern(kind.urn).fullmatch(native.urn)
    if kind is None or match is None:
        return native.urn
    parts = [decode_name(match[f"part{number}"]) for number in range(kind.urn.count("{"))]
    if kind.has_environment and parts[-1] == _DEFAULT_ENVIRONMENT:
        parts.pop()
    if _native_urn(kind, (*parts,)) != native.urn:
        return native.urn
    urn = entity_urn(kind.kind, *parts)
    original = original_urn(urn)
    return original if original is not None and native_entity(original) == native else urn


@cache
def _pattern(urn: str) -> re.Pattern[str]:
    part = "[^,()]+" if "(" in urn else ".+"
    return re.compile(_PLACEHOLDER.sub(rf"(?P<part\1>{part})", re.escape(urn)), re.DOTALL)


class EntityCodec(Codec[CatalogEntity]):
    """Encodes entities of the types in `_KINDS`; those of other types only have `raw`."""

    type: Any = CatalogEntity
    visible_fields: ClassVar[frozenset[str]] = frozenset(
        {"display_name", "description", "parent", "owners", "tags", "references", "properties"}
    )

    def __init__(self, type: str, naming: Naming, server: ServerModel | None = None) -> None:
        super().__init__(server)
        self._kind = _BY_TYPE.get(type)
        self._naming = naming
        self.custom = (
            self._kind.aspect
            if self._kind is not None and self._kind.has_custom_properties
            else None
        )

    def entity(self, key: str) -> Entity:
        found = native_entity(key)
        assert found is not None, f"no DataHub URN for {key}"
        return found

    def key(self, item: CatalogEntity) -> str:
        return canonical_urn(item.urn)

    def render(self, item: CatalogEntity) -> RenderedItem:
        key = self.key(item)
        if item.urn != key and CATALOG in item.raw:
            # Snapshots of format 1.0 have native URNs, and everything is in `raw`.
            native = self.decode(key, self.current(chain(*writes_in_raw(item.raw).values())))
            unset = CatalogEntity(urn=item.urn, kind=item.kind)
            visible = {
                name: getattr(native, name)
                for name in self.visible_fields
                if getattr(item, name) == getattr(unset, name)
            }
            item = msgspec.structs.replace(item, **visible)
        return super().render(msgspec.structs.replace(item, urn=key, kind=shared_kind(key)))

    def datasets(self, aspects: Aspects) -> list[str]:
        """The DataHub URNs of the datasets in relations."""
        return [
            urn
            for relation in (self._kind.relations if self._kind else ())
            if relation.target == "dataset"
            for urn in _members(relation, aspects) or ()
        ]

    def read_native(self, key: str, aspects: Aspects) -> CatalogEntity:
        kind = self._kind
        if kind is None:
            return CatalogEntity(urn=key)
        body, parts = aspects.get(kind.aspect) or {}, entity_id(key)
        name: str | None = body.get(kind.name_key)
        if kind.title_part is not None and name == _default_title(kind, key):
            name = None
        edited = (aspects.get(kind.edited) or {}).get("description")
        parent: str | None = None
        if kind.parent is not None and body.get(kind.parent[0]):
            parent = canonical_urn(body[kind.parent[0]])
        elif kind.kind == "task" and parts is not None:
            parent = entity_urn("pipeline", *parts[:2], *parts[3:])
        owned = common.read_ownership(aspects) if "ownership" in kind.annotations else None
        tags = read_labels(TAGS, aspects) if TAGS.aspect in kind.annotations else ()
        return CatalogEntity(
            urn=key,
            kind=shared_kind(key),
            display_name=name,
            description=(body.get(kind.description) if edited is None else edited) or None,
            parent=parent,
            owners=() if owned is None else owned.owners,
            tags=tags,
            references=self._references(aspects),
            properties=read_unpacked_properties(aspects, kind.aspect, CatalogEntity)
            if kind.has_custom_properties
            else {},
        )

    def write_native(self, aspects: Aspects, item: CatalogEntity, *, is_new: bool) -> None:
        kind = self._kind
        if kind is None:
            return
        current = self.read_native(self.key(item), aspects)
        visible_names = ("display_name", "description", "parent")
        if is_new or any(getattr(current, name) != getattr(item, name) for name in visible_names):
            self._write_properties(kind, aspects, item, current)
        if "ownership" in kind.annotations and current.owners != item.owners:
            owners = Ownership(owners=item.owners) if item.owners else None
            common.write_ownership(aspects, owners)
        if TAGS.aspect in kind.annotations:
            write_labels(TAGS, aspects, item.tags)
        if TERMS.aspect in kind.annotations:
            write_labels(TERMS, aspects, item.references.get("terms", ()))
        for relation in _relations(kind):
            wanted = item.references.get(relation.name, ())
            if current.references.get(relation.name, ()) != wanted:
                self._write_relation(relation, aspects, wanted)

    def with_references_of(self, visible: CatalogEntity, item: CatalogEntity) -> CatalogEntity:
        # Until a dataset exists, its URN is read without its instance; use the URN in `item`.
        kind = self._kind
        same = {
            relation.name: item.references[relation.name]
            for relation in (kind.relations if kind else ())
            if relation.name in item.references
            and self._to_datahub_urns(relation, visible) == self._to_datahub_urns(relation, item)
        }
        return msgspec.structs.replace(visible, references={**visible.references, **same})

    def _to_datahub_urns(self, relation: _Relation, item: CatalogEntity) -> list[str | None]:
        return [
            self._to_datahub_urn(relation, name) for name in item.references.get(relation.name, ())
        ]

    def _write_properties(
        self, kind: _EntityKind, aspects: Aspects, item: CatalogEntity, current: CatalogEntity
    ) -> None:
        name = item.display_name
        if name is None and kind.title_part is not None:
            name = _default_title(kind, self.key(item))
        values: dict[str, Any] = {kind.name_key: name}
        if kind.parent is not None:
            parent = native_entity(item.parent or "")
            is_same_kind = parent is not None and parent.type == kind.type
            values[kind.parent[0]] = parent.urn if parent is not None and is_same_kind else None
        if current.description != item.description:
            if (aspects.get(kind.edited) or {}).get("description") is not None:
                update_aspect(aspects, kind.edited, description=None)
            values[kind.description] = item.description or kind.required.get(kind.description)
        update_aspect(aspects, kind.aspect, kind.required, **values)

    def _references(self, aspects: Aspects) -> dict[str, tuple[str, ...]]:
        kind = self._kind
        assert kind is not None, "an unknown kind has no relations"
        references: dict[str, tuple[str, ...]] = {}
        for relation in _relations(kind):
            urns = _members(relation, aspects)
            if urns is None:
                continue
            names = tuple(dict.fromkeys(self._to_lumos_urn(relation, urn) for urn in urns))
            # A relation that could not be written again is only in `raw`.
            if names and [self._to_datahub_urn(relation, name) for name in names] == urns:
                references[relation.name] = names
        if TERMS.aspect in kind.annotations and (terms := read_labels(TERMS, aspects)):
            references["terms"] = terms
        return references

    def _write_relation(
        self, relation: _Relation, aspects: Aspects, wanted: tuple[str, ...]
    ) -> None:
        """Remove unwanted members and edges, and add new members."""
        if _members(relation, aspects) is None:
            return
        natives = [native for name in wanted if (native := self._to_datahub_urn(relation, name))]
        body = aspects.get(relation.aspect) or relation.empty
        edges = [edge for edge in body.get(relation.edges) or () if edge[_EDGE_URN_KEY] in natives]
        in_edges = {edge[_EDGE_URN_KEY] for edge in edges}
        members = update_list(
            body.get(relation.list) or (),
            lambda member: _urn_in(relation, member),
            [native for native in natives if native not in in_edges],
            lambda native: {relation.member: native} if relation.member else native,
        )
        values: dict[str, Any] = {relation.list: members}
        if relation.edges in body:
            values[relation.edges] = edges
        if relation.derived:
            values[relation.derived] = None
        if natives or relation.aspect in aspects:
            update_aspect(aspects, relation.aspect, relation.empty, **values)
        if relation is _DOMAINS and not members:
            aspects.pop(relation.aspect, None)

    def _to_lumos_urn(self, relation: _Relation, native: str) -> str:
        return (
            self._naming.to_lumos(native) if relation.target == "dataset" else canonical_urn(native)
        )

    def _to_datahub_urn(self, relation: _Relation, name: str) -> str | None:
        if relation.target == "dataset":
            return self._naming.to_datahub(name)
        native = native_entity(name)
        return (
            native.urn
            if native is not None and native.type == _BY_KIND[relation.target].type
            else None
        )


def _relations(kind: _EntityKind) -> tuple[_Relation, ...]:
    return (*kind.relations, _DOMAINS) if "domains" in kind.annotations else kind.relations


def _members(relation: _Relation, aspects: Aspects) -> list[str] | None:
    """The URNs in a relation, or None if it does not match DataHub's model."""
    body = aspects.get(relation.aspect) or {}
    try:
        urns = [
            *(_urn_in(relation, member) for member in body.get(relation.list) or ()),
            *(edge[_EDGE_URN_KEY] for edge in body.get(relation.edges) or ()),
        ]
    except (AttributeError, KeyError, TypeError):
        return None
    return urns if all(isinstance(urn, str) for urn in urns) else None


def _urn_in(relation: _Relation, member: Any) -> Any:
    return member[relation.member] if isinstance(member, dict) else member


def _default_title(kind: _EntityKind, key: str) -> str:
    """The title of an entity without a display name."""
    parts = entity_id(key)
    if parts is None or kind.title_part is None:
        return key
    return "/".join(parts) if kind.urn.count("{") == 1 else parts[kind.title_part]


class _NamedItemKind(NamedTuple):
    """A kind of item with a name: the keys of its fields in `aspect`, and its lists of names.

    Each list has an aspect, a key in it, and the type of the entities with these names.
    """

    item: Any
    type: str
    aspect: str
    fields: dict[str, str]
    lists: dict[str, tuple[str, str, str]]
    empty: Mapping[str, Any] = MappingProxyType({})
    has_custom_properties: bool = True


_NAMED_ITEM_KINDS: Final = (
    _NamedItemKind(
        User, "corpuser", "corpUserInfo",
        {"display_name": "displayName", "email": "email", "title": "title", "active": "active"},
        {"groups": ("groupMembership", "groups", "corpGroup")},
    ),
    _NamedItemKind(
        Group, "corpGroup", "corpGroupInfo",
        {"display_name": "displayName", "description": "description", "email": "email"},
        {"members": ("corpGroupInfo", "members", "corpuser")},
        {"admins": [], "members": [], "groups": []}, has_custom_properties=False,
    ),
    _NamedItemKind(
        GlossaryTerm, "glossaryTerm", "glossaryTermInfo", {"display_name": "name"},
        {"related": ("glossaryRelatedTerms", "relatedTerms", "glossaryTerm")},
        {"definition": "", "termSource": "INTERNAL"},
    ),
)  # fmt: skip
NAMED_TYPES: Final = {each.type: each.item for each in _NAMED_ITEM_KINDS}
"""The item types of terms, users and groups, by entity type."""


class NamedCodec(Codec[Any]):
    """Encodes terms, users and groups, which have the same names in DataHub."""

    visible_fields: ClassVar[frozenset[str]] = frozenset(
        {"display_name", "email", "title", "active", "groups", "definition", "parent", "related",
         "domain", "owners", "properties"}
    )  # fmt: skip

    def __init__(self, type: Any, server: ServerModel | None = None) -> None:
        super().__init__(server)
        self.type = type
        self._kind = next(each for each in _NAMED_ITEM_KINDS if each.item is type)
        self.custom = self._kind.aspect if self._kind.has_custom_properties else None

    def entity(self, key: str) -> Entity:
        return Entity(self._kind.type, native_urn_of(self._kind.type, key))

    def key(self, item: Any) -> str:
        name: str = item.name
        return name

    def read_native(self, key: str, aspects: Aspects) -> Any:
        body = aspects.get(self._kind.aspect) or {}
        found = {field: body[name] for field, name in self._kind.fields.items() if name in body}
        for field, (aspect, name, type) in self._kind.lists.items():
            urns = (aspects.get(aspect) or {}).get(name) or ()
            found[field] = read_list(urns, lambda urn, type=type: entity_name(type, urn))  # type: ignore[misc]
        if self.custom is not None:
            found["properties"] = read_unpacked_properties(aspects, self.custom, self.type)
        if self.type is GlossaryTerm:
            owned = common.read_ownership(aspects) or Ownership()
            found |= {
                "definition": body.get("definition") or None,
                "parent": entity_name("glossaryNode", body.get("parentNode") or ""),
                "domain": common.read_domain(aspects),
                "owners": tuple(owner.name for owner in owned.owners),
            }
        return self.type(name=key, **found)

    def write_native(self, aspects: Aspects, item: Any, *, is_new: bool) -> None:
        current = self.read_native(item.name, aspects)
        if is_new or current != item:
            body = {name: getattr(item, field) for field, name in self._kind.fields.items()}
            if self.type is GlossaryTerm:
                parent = native_urn_of("glossaryNode", item.parent) if item.parent else None
                body |= {"definition": item.definition or "", "parentNode": parent}
            update_aspect(aspects, self._kind.aspect, self._kind.empty, **body)
        for field, (aspect, name, type) in self._kind.lists.items():
            if getattr(current, field) != getattr(item, field):
                urns: Any = update_list(
                    (aspects.get(aspect) or {}).get(name) or (),
                    lambda urn, type=type: entity_name(type, urn),  # type: ignore[misc]
                    getattr(item, field),
                    lambda each, type=type: native_urn_of(type, each),  # type: ignore[misc]
                )
                update_aspect(aspects, aspect, **{name: urns})
        if self.type is GlossaryTerm:
            if current.domain != item.domain:
                common.write_domain(aspects, item.domain)
            if current.owners != item.owners:
                known = (common.read_ownership(aspects) or Ownership()).owners
                by_name = {owner.name: owner for owner in known}
                owners = tuple(by_name.get(name) or Owner(name=name) for name in item.owners)
                common.write_ownership(aspects, Ownership(owners=owners))
